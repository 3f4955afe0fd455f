"""Task files: by name from ``prompts/``, or by path; and the control texts that lie beside them."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from auditor.core import reading
from auditor.core.errors import DataFileError, UnknownPlugin
from auditor.core.reading import from_json
from auditor.core.shown import plural
from auditor.core.talk import Message, Talk, Tool
from auditor.core.types import digest
from auditor.tasks import kinds, own_labels
from auditor.tasks.answers import Reader, Value
from auditor.tasks.conversation import Conversation
from auditor.tasks.kinds import Kind
from auditor.tasks.phrases import bare, normalise
from auditor.tasks.task import Example, Task

if TYPE_CHECKING:
    from pydantic import ValidationError

    from auditor.tasks.schema import TaskFile

_LARGEST = 1_000_000  # bytes; a task file is kept in memory, and every control text is asked of every model
Lines = dict[tuple[str | int, ...], int]  # of the fields of a file
_PAIR = ("text", "changed")
_PAIR_HELP = 'One JSON object a line: {"text": "…", "changed": "…"}, two texts that need different answers.'


def available() -> list[str]:
    """The names of the tasks that come with the package, sorted.

    Examples
    --------
    >>> "sentiment" in available()
    True
    """
    return reading.shipped_names("prompts")


def load(name_or_path: str | Path, *, labels: Sequence[str] = (), favourable: str | None = None) -> Task:
    """Load a task by name, or from a file: a path ends in ``.yaml`` or ``.yml``, or holds a slash.

    ``labels`` take the place of the task's, and a plain prompt asks for them; ``favourable`` is the good one.

    Raises
    ------
    UnknownPlugin
        No task has this name.
    DataFileError
        The file does not exist or is malformed; the message names file, line and field.
    ConfigError, UnknownValue
        The task cannot have these labels, or ``favourable`` is none of them.
    """
    text = os.fspath(name_or_path)
    is_path = isinstance(name_or_path, Path) or "/" in text or os.sep in text or text.endswith((".yaml", ".yml"))
    if not is_path:
        if text in available():
            path = reading.shipped("prompts", f"{text}.yaml")
            return _from_file(path, builtin=True, labels=labels, favourable=favourable)
        if not Path(text).is_file():
            raise UnknownPlugin("task", text, available(), "`audit list tasks new` writes a task file of your own.")
    return _from_file(Path(text), builtin=False, labels=labels, favourable=favourable)


class Named(Protocol):
    """A plan, as far as it says which task is asked."""

    @property
    def task(self) -> str: ...  # noqa: D102
    @property
    def labels(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def favourable(self) -> str | None: ...  # noqa: D102


def of_plan(plan: Named) -> Task:
    """Load the task of ``plan``, with the labels that it names."""
    return load(plan.task, labels=plan.labels, favourable=plan.favourable)


def _from_file(path: Path, *, builtin: bool, labels: Sequence[str], favourable: str | None) -> Task:
    raw, lines = reading.read_yaml(
        path,
        largest=_LARGEST,
        missing=" The tasks that come with the tool: audit list tasks. A file of your own: audit list tasks new NAME",
    )
    if raw is None:
        raise DataFileError(f"{path}: the file is empty; `audit list tasks new` writes one to start from")
    if not isinstance(raw, dict):
        raise DataFileError(f"{path}: a task file is a mapping of fields (format, name, kind, …)")
    raw = own_labels.relabelled(own_labels.filled(raw, path.stem), labels, favourable, builtin=builtin)
    return _made(raw, path, lines, builtin=builtin, own=bool(labels))


def _made(raw: Mapping[str, Any], path: Path, lines: Lines, *, builtin: bool, own: bool = False) -> Task:
    """Check the fields of a task file, and make the task; one of labels that a user named (``own``) has no controls."""
    from pydantic import ValidationError

    from auditor.tasks.schema import TaskFile

    try:
        part = TaskFile.model_validate(raw)
    except ValidationError as error:
        where = Path("--labels") if own else path
        raise DataFileError(_complaint(where, error, TaskFile.model_fields, {} if own else lines)) from None
    task = _build(part, path, builtin=builtin)
    _prove(task, part, path)
    controls = part.controls
    if (
        controls is None
        and builtin
        and not own
        and reading.shipped("embedded", "controls", f"{part.name}.jsonl").is_file()
    ):
        controls = f"{part.name}.jsonl"
    pairs = _beside(path, "controls", controls, builtin=builtin, kind="controls")
    return task if pairs is None else dataclasses.replace(task, controls=control_texts(pairs, task.kept))


def _complaint(path: Path, error: ValidationError, known: Collection[str], lines: Lines) -> str:
    """Say what is wrong with the first field that is, and how many more there are."""
    details = error.errors(include_url=False, include_context=False)
    # Unknown fields first: a misspelled name explains the "missing" one behind it.
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    where = tuple(p for p in first["loc"] if not (isinstance(p, str) and p in _UNION_ARMS))
    message = first["msg"].removeprefix("Value error, ")
    field = ".".join(str(part) for part in where)
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(where[-1]), sorted(known), n=1)
        message = "no such field" + (f"; did you mean {near[0]}?" if near and len(where) == 1 else "")
    elif first["type"] == "missing":
        message = "this field is missing"
    elif isinstance(first["input"], bool) and "string" in message.casefold():
        message += "; YAML reads yes, no, on and off as true and false: put the word in quotes"
    elif isinstance(first["input"], int | float) and "string" in message.casefold():
        message += f'; put it in quotes: "{first["input"]}"'
    if not field and ": " in message and message.partition(":")[0] in known:
        field, _, message = message.partition(": ")
        where = (field,)
    line = next((lines[where[:n]] for n in range(len(where), 0, -1) if where[:n] in lines), None)
    at = f", line {line}" if line else ""
    name = f"field {field}: " if field else ""
    more = f" ({plural(len(details) - 1, 'more problem')} in this file)" if len(details) > 1 else ""
    return f"{path}{at}: {name}{message}{more}. The fields: audit list tasks format"


_UNION_ARMS = frozenset({"str", "int", "float", "tuple[str, ...]", "tuple[strict-str, ...]", "constrained-str"})


_NOT_IN_DIGEST: Any = {
    "seeds": True,
    "against": True,
    "irrelevant": True,
    "controls": True,
    "description": True,
    "subject": True,
    "formats": {"__all__": {"graded"}},
}


def _build(part: TaskFile, path: Path, *, builtin: bool) -> Task:
    from auditor.tasks.schema import TALK

    kind = kinds.of(part.kind)
    scale = (float(part.scale.low), float(part.scale.high)) if part.scale else None
    # What shapes prompts and reading; where the texts lie does not.
    content = part.model_dump(mode="json", exclude=_NOT_IN_DIGEST | ({} if part.turns else dict.fromkeys(TALK, True)))
    made, further = (Conversation, _talk(part)) if part.turns else (Task, {})
    return made(
        **further,
        name=part.name,
        kind=kind,
        description=part.description.strip(),
        labels=tuple(label.name for label in part.labels),
        favourable=part.favourable,
        system=part.system.strip(),
        question=_with_labels(part.question, part),
        tag=part.input.tag,
        examples=tuple(
            Example(text=e.text.strip(), value=kind.value(e.label), reason=e.reason.strip()) for e in part.examples
        ),
        formats=MappingProxyType(
            {
                name: form.model_copy(
                    update={"instruction": _with_labels(form.instruction, part), "answer": form.answer.strip()}
                )
                for name, form in part.formats.items()
            }
        ),
        default_format=part.default_format or next(iter(part.formats)),
        scale=scale,
        unit=part.scale.unit if part.scale else "",
        tolerance=None if part.scale is None else part.scale.tolerance,
        keep_characters=part.truncation.characters if part.truncation else None,
        keep_words=part.truncation.words if part.truncation else None,
        temperature=float(part.temperature),
        sha256=digest(content),
        source=f"prompts/{path.name}" if builtin else str(path),
        subject=part.subject.strip(),
        seeds_path=_beside(path, "seeds", part.seeds, builtin=builtin),
        against_path=_beside(path, "against", part.against, builtin=builtin),
        irrelevant=MappingProxyType(part.irrelevant),
        reader=_reader(part, kind, scale),
    )


def _talk(part: TaskFile) -> dict[str, Any]:
    """What a conversation has beside the fields of every task."""
    return {
        "turns": tuple(
            Message(role=role, content=_with_labels(text, part))  # type: ignore[arg-type]
            for turn in part.turns
            for role, text in turn.message.items()
        ),
        "tools": tuple(
            Tool(
                name=t.name,
                description=t.description.strip(),
                parameters=t.parameters,
                results=(t.result,) if isinstance(t.result, str) else t.result,
                sets=t.sets,
            )
            for t in part.tools
        ),
        "talk": Talk(steps=part.ends.steps, ends=part.ends.tools, says=part.ends.says),
        "outcome": part.outcome,
        "state": tuple(part.state.items()),
    }


def _with_labels(text: str, part: TaskFile) -> str:
    """Write the list of labels where ``{labels}`` stands, one to a line: names may hold commas."""
    return text.replace("{labels}", "\n".join(f"- {label.name}" for label in part.labels)).strip()


def _reader(part: TaskFile, kind: Kind, scale: tuple[float, float] | None) -> Reader:
    names: dict[str, str] = {}
    for label in part.labels:
        for name in (label.name, *label.aliases):
            names[normalise(name)] = label.name
    # "(a)" is also read where its brackets were taken for punctuation, unless "[a]" is another label.
    stripped: dict[str, set[str]] = {}
    for plain, target in names.items():
        stripped.setdefault(bare(plain), set()).add(target)
    for plain, targets in stripped.items():
        if plain and len(targets) == 1:
            names.setdefault(plain, next(iter(targets)))
    return kind.reader(
        names=MappingProxyType(names),
        keys=_distinct((*kind.keys, *part.answer.keys)),
        markers=_distinct((*kind.markers, *part.answer.markers)),
        scale=scale,
        unit=part.scale.unit if part.scale else "",
        none=_distinct(part.answer.none),
    )


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(normalise(word) for word in words))


def _beside(path: Path, field: str, name: str | None, *, builtin: bool, kind: str = "seeds") -> Path | None:
    """A file that a task file names: below its folder, also where links lead."""
    if name is None:
        return None
    if builtin:
        return reading.shipped("embedded", kind, name)
    folder = path.parent.resolve()
    if not (file := path.parent / name).resolve().is_relative_to(folder):
        raise DataFileError(
            f"{path}: field {field}: {name!r} does not lie below the folder of the task file. Put the file there, or "
            "give texts with --data"
        )
    return file


def _prove(task: Task, part: TaskFile, path: Path) -> None:
    """Read every answer that the formats ask for, before a model is paid to give it."""
    for i, example in enumerate(task.examples):
        if task.kind.wrong(example.value, task.labels):
            raise DataFileError(
                f"{path}: field examples.{i}.label: {example.value!r} is none of the labels ({', '.join(task.labels)})"
            )
    for name, form in task.formats.items():
        if task.labels and (word := own_labels.foreign(form.instruction, task.names)) is not None:
            raise DataFileError(
                f"{path}: field formats.{name}.instruction: it asks for {word!r}, which is none of the labels "
                f"({', '.join(task.labels[:12])}). Write {{labels}} where they should be listed"
            )
        for i, example in enumerate(task.examples):
            if "{reason}" in form.answer and not example.reason:
                raise DataFileError(
                    f"{path}: field examples.{i}.reason: the format {name!r} shows a reason and there is none"
                )
        values: list[tuple[str, Value, str]] = [
            (f"examples.{i}", e.value, e.reason) for i, e in enumerate(task.examples)
        ]
        values += [("labels", value, "Some words about it.") for value in task.kind.possible(task.labels, task.scale)]
        for where, value, reason in values:
            written = task.write(value, name, reason)
            got = task.read(written, "chat", name)
            if got.status != "ok" or got.value != value:
                raise DataFileError(
                    f"{path}: field formats.{name}.answer: {written!r} (from {where}) reads back as "
                    f"{got.status}{': ' + got.reason if got.reason else ''}, not as {value!r}"
                )


def control_texts(path: Path, kept: Callable[[str], int] = len) -> tuple[tuple[str, str], ...]:
    """Read a file of control texts: pairs that a model which can do the task answers differently.

    JSON lines; each an object with the fields ``text`` and ``changed``. ``kept`` says how many characters of a text a
    prompt keeps; texts that differ only after them are an error. `DataFileError` names file, line and field.

    Examples
    --------
    >>> from auditor.core import reading
    >>> len(control_texts(reading.shipped("embedded", "controls", "sentiment.jsonl")))
    8
    """
    pairs = []
    for number, line in enumerate(_controls(path).splitlines(), start=1):
        if line.strip():
            pairs.append(_pair_of(line, f"{path}, line {number}", kept))
    if not pairs:
        raise DataFileError(f"{path}: there are no control texts in this file. {_PAIR_HELP}")
    return tuple(pairs)


def _controls(path: Path) -> str:
    try:
        return reading.text(path, largest=_LARGEST)
    except UnicodeDecodeError as error:
        raise DataFileError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8.") from None
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot read the control texts ({error.strerror}). Correct the field `controls` of the task "
            "file, or take it out; the path is relative to the task file."
        ) from None


def _pair_of(line: str, where: str, kept: Callable[[str], int]) -> tuple[str, str]:
    try:
        row = from_json(line)
    except ValueError as error:
        raise DataFileError(f"{where}: no JSON ({error}). {_PAIR_HELP}") from None
    if not isinstance(row, dict):
        raise DataFileError(f"{where}: not an object. {_PAIR_HELP}")
    for name in sorted(set(row) - set(_PAIR)):
        raise DataFileError(f"{where}: field {name}: no such field. {_PAIR_HELP}")
    texts = []
    for name in _PAIR:
        text = row.get(name)
        if not isinstance(text, str) or not text.strip():
            what = "is missing" if name not in row else "is not a text, or blank"
            raise DataFileError(f"{where}: field {name}: {what}. {_PAIR_HELP}")
        texts.append(text)
    first, second = texts
    if first == second:
        raise DataFileError(f"{where}: both texts are equal, so no answer can tell them apart. {_PAIR_HELP}")
    if first[: kept(first)] == second[: kept(second)]:
        raise DataFileError(f"{where}: the texts differ only in what the task's `truncation` cuts off. {_PAIR_HELP}")
    return first, second
