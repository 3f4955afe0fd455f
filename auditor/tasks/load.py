"""Task files: by name from ``prompts/``, or by path; and the control texts that lie beside them.

A user may name other labels: a plain prompt is made for them, and prompts that ask for other labels are refused.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError, UnknownPlugin, UnknownValue
from auditor.core.reading import Where, checked, load_fields, load_lines
from auditor.core.talk import Message, Talk, Tool
from auditor.core.types import digest, grouped
from auditor.tasks import kinds
from auditor.tasks.answers import Alone, Reader, bare, normalise
from auditor.tasks.kinds import Kind
from auditor.tasks.task import Conversation, Task

if TYPE_CHECKING:
    from auditor.core.plan import Plan
    from auditor.tasks.schema import TaskFile

_LARGEST = 1_000_000  # bytes; a task file is kept in memory, and every control text is asked of every model
_PAIR_HELP = 'One JSON object a line: {"text": "…", "changed": "…"}, two texts that need different answers.'


def available() -> list[str]:
    """The names of the tasks that come with the package, sorted."""
    return reading.shipped_names("prompts")


def load(name_or_path: str | Path, *, labels: Sequence[str] = (), favourable: str | None = None) -> Task:
    """Load a task by name, or from a file: a path ends in ``.yaml`` or ``.yml``, or holds a slash.

    ``hiring:de`` is the task in another language, ``hiring:FILE.yaml`` in that of a language file of your own.

    ``labels`` take the place of the task's, and a plain prompt asks for them; ``favourable`` is the good one. Raises
    `UnknownPlugin` where no task has this name, `DataFileError` with file, line and field where a file is malformed.
    """
    text = os.fspath(name_or_path)
    name, colon, language = text.partition(":")
    if colon and name in available():
        if labels:
            raise ConfigError(f"--labels: {text!r} has the labels of its language; write a task file of your own.")
        return _in_language(name, language, favourable)
    is_path = isinstance(name_or_path, Path) or "/" in text or os.sep in text or text.endswith((".yaml", ".yml"))
    if not is_path:
        if text in available():
            path = reading.shipped("prompts", f"{text}.yaml")
            return _from_file(path, builtin=True, labels=labels, favourable=favourable)
        if not Path(text).is_file():
            raise UnknownPlugin("task", text, available(), "`audit list tasks new` writes a task file of your own.")
    return _from_file(Path(text), builtin=False, labels=labels, favourable=favourable)


def _in_language(name: str, code: str, favourable: str | None) -> Task:
    """Make a task of the package in another language: its prompt, its labels and its notes."""
    from auditor.text import languages

    language = languages.load(code)
    if name not in language.tasks:
        raise UnknownPlugin(f"task in {language.name}", name, language.tasks)
    path = reading.shipped("prompts", f"{name}.yaml")
    raw, _ = load_fields(path, largest=_LARGEST)
    said, prompt = language.tasks[name], language.prompt
    good, *_, bad = said.labels or ("", "")
    forms: dict[str, dict[str, object]] = {
        "plain": {"instruction": prompt.plain if said.labels else prompt.rate, "max_tokens": 24}
    }
    if said.answer:
        answer = raw["formats"]["json"]["answer"]
        forms = {"json": {"instruction": said.answer, "answer": answer, "graded": True, "max_tokens": 64}}
    elif said.labels:
        forms["graded"] = {"instruction": prompt.grade, "graded": True}
    if said.labels:
        if len(said.labels) != len(raw["labels"]):
            wanted = " / ".join(one["name"] for one in raw["labels"])
            raise DataFileError(f"{language.path}: tasks.{name}.labels needs {len(raw['labels'])} words, for {wanted}")
        raw["labels"] = [
            {"name": own, "aliases": [one["name"], *one["aliases"]]}
            for own, one in zip(said.labels, raw["labels"], strict=True)
        ]
        raw["favourable"] = favourable or good
    for form in forms.values():
        form["instruction"] = str(form["instruction"]).replace("{good}", good).replace("{bad}", bad)
    raw |= {
        "name": f"{name}-{Path(code).stem.lower()}",
        "system": said.system,
        "question": f"{said.question} {prompt.frame}\n\n{{input}}",
        "examples": [],
        "formats": forms,
        "default_format": next(iter(forms)),
        "against": None,
        "irrelevant": {},
    }
    task = _made(raw, path, {}, builtin=True)
    reader = task.reader
    if said.labels:
        reader = Alone(**{part.name: getattr(reader, part.name) for part in dataclasses.fields(reader)})
    assert language.path is not None
    return dataclasses.replace(
        task,
        language=code,
        seeds_path=language.path / name,
        controls=tuple(zip(said.good, said.bad, strict=False)),
        source=f"the task {name} in {language.name}",
        reader=reader,
    )


def of_plan(plan: Plan) -> Task:
    """Load the task of ``plan``, with the labels that it names."""
    return load(plan.task, labels=plan.labels, favourable=plan.favourable)


def _from_file(path: Path, *, builtin: bool, labels: Sequence[str], favourable: str | None) -> Task:
    raw, lines = load_fields(
        path,
        largest=_LARGEST,
        missing=" The tasks that come with the tool: audit list tasks. A file of your own: audit list tasks new NAME",
        empty="; `audit list tasks new` writes one to start from",
    )
    raw = relabelled(filled(raw, path.stem), labels, favourable, builtin=builtin)
    return _made(raw, path, lines, builtin=builtin, own=bool(labels))


def _made(raw: Mapping[str, Any], path: Path, lines: Mapping[Where, int], *, builtin: bool, own: bool = False) -> Task:
    """Check the fields of a task file, and make the task; one of labels that a user named (``own``) has no controls."""
    from auditor.tasks.schema import TaskFile

    help = "The fields: audit list tasks format"
    part = checked(TaskFile, raw, "--labels" if own else path, {} if own else lines, help)
    task = _build(part, path, builtin=builtin)
    if mistake := next(_mistakes(task), None):
        raise DataFileError(f"{path}: field {mistake}")
    if builtin:
        pairs: Path | None = reading.shipped("embedded", "controls", f"{part.name}.jsonl")
    else:
        pairs = _beside(path, "controls", part.controls, builtin=False)
    if own or pairs is None or (builtin and not pairs.is_file()):
        return task
    return dataclasses.replace(task, controls=control_texts(pairs, task.kept))


_NOT_IN_DIGEST: Any = {
    **dict.fromkeys(("seeds", "against", "irrelevant", "controls", "description", "subject"), True),
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
        examples=part.examples,
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
    for plain, targets in grouped((bare(name), label) for name, label in names.items()).items():
        if plain and len(set(targets)) == 1:
            names.setdefault(plain, targets[0])
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


def _beside(path: Path, field: str, name: str | None, *, builtin: bool) -> Path | None:
    """A file that a task file names: below its folder, also where links lead."""
    if name is None:
        return None
    if builtin:
        return reading.shipped("embedded", "seeds", name)
    folder = path.parent.resolve()
    if not (file := path.parent / name).resolve().is_relative_to(folder):
        raise DataFileError(
            f"{path}: field {field}: {name!r} does not lie below the folder of the task file. Put the file there, or "
            "give texts with --data"
        )
    return file


def _mistakes(task: Task) -> Iterator[str]:
    """Read every answer that the formats ask for, before a model is paid to give it; yields field and mistake."""
    examples = [(f"examples.{i}", task.kind.value(e.label), e.reason.strip()) for i, e in enumerate(task.examples)]
    for where, value, _ in examples:
        if task.kind.wrong(value, task.labels):
            yield f"{where}.label: {value!r} is not one of the labels ({', '.join(task.labels)})"
    for name, form in task.formats.items():
        if task.labels and (word := foreign(form.instruction, task.names)) is not None:
            yield (
                f"formats.{name}.instruction: it asks for {word!r}, which is not one of the labels "
                f"({', '.join(task.labels[:12])}). Write {{labels}} where they should be listed"
            )
        for where, _, reason in examples:
            if "{reason}" in form.answer and not reason:
                yield f"{where}.reason: the format {name!r} shows a reason, and the example has none"
        possible = task.kind.possible(task.labels, task.scale)
        for where, value, reason in (*examples, *(("labels", value, "Some words about it.") for value in possible)):
            written = task.write(value, name, reason)
            got = task.read(written, "chat", name)
            if got.status != "ok" or got.value != value:
                said = f"{got.status}: {got.reason}" if got.reason else got.status
                yield f"formats.{name}.answer: {written!r} (from {where}) reads back as {said}, not as {value!r}"


def control_texts(path: Path, kept: Callable[[str], int] = len) -> tuple[tuple[str, str], ...]:
    """Read a file of control texts: pairs that a model which can do the task answers differently.

    JSON lines; each an object with the fields ``text`` and ``changed``. ``kept`` says how many characters of a text a
    prompt keeps; texts that differ only after them are an error. `DataFileError` names file, line and field.
    """
    from auditor.tasks.schema import ControlPair

    missing = " Correct the field `controls` of the task file, or take it out; the path is relative to the task file."
    pairs = []
    for number, pair in load_lines(path, ControlPair, _PAIR_HELP, largest=_LARGEST, missing=missing):
        if pair.text[: kept(pair.text)] == pair.changed[: kept(pair.changed)]:
            why = "the texts differ only in what the task's `truncation` cuts off"
            raise DataFileError(f"{path}, line {number}: {why}. {_PAIR_HELP}")
        pairs.append((pair.text, pair.changed))
    if not pairs:
        raise DataFileError(f"{path}: there are no control texts in this file. {_PAIR_HELP}")
    return tuple(pairs)


# -- labels that a user names ------------------------------------------------------------------------------------------


LONGEST_LABEL, MOST_LABELS = 40, 12  # characters of an answer that may be a label, and how many labels are offered
OTHER = "OTHER"  # stands for labels that no answer shows
_KEPT = ("seeds", "against", "subject", "irrelevant", "truncation", "temperature", "description")  # of the task below
# Lists of answers in an instruction: "one word, invite or reject", "one of: a, b or c", 'its value "a" or "b"', "Answer
# yes or no."
_ONE_OF = re.compile(
    r"\bone (?:word|label|of(?: these)?(?: words| labels)?) ?[:,] ?([^.;:]+?)(?:,? and nothing|[.;]|$)", re.IGNORECASE
)
_WITH = r"(?<!not )\b(?:value|holds|answer|reply|respond)(?: with| is| only| either)*:? "
_QUOTED = re.compile(_WITH + r'("[^"]{1,60}"(?:, ?"[^"]{1,60}")*,? or "[^"]{1,60}")', re.IGNORECASE)
_BARE = re.compile(_WITH + r"([\w-]+(?:, [\w-]+)*,? or [\w-]+)(?: and nothing|[.;,]|$)", re.IGNORECASE)
_BETWEEN = re.compile(r",\s*(?:or\s+)?|\s+or\s+")


def filled(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the fields of a task file with a plain prompt in place of the fields that it leaves out.

    Only a file that lists labels gets one. ``name`` is what the task is called where it does not say.
    """
    labels = raw.get("labels")
    if not isinstance(labels, list) or not labels or "turns" in raw:
        return dict(raw)
    several = raw.get("kind") == "multilabel"
    longest = max(len(str(one.get("name", "") if isinstance(one, dict) else one)) for one in labels)
    long = 16 + longest * (len(labels) if several else 1)
    texts: Any = reading.load_yaml(reading.shipped("embedded", "labels.yaml"))
    made = texts["several" if several else "one"]
    made["formats"]["plain"]["max_tokens"] = long
    made["formats"]["json"]["max_tokens"] = 32 + long
    called = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-_")[:64] or "labels"
    return {"format": 1, "name": called, "kind": "classification", **made, **raw}


def relabelled(
    raw: Mapping[str, Any], labels: Sequence[str], favourable: str | None, *, builtin: bool
) -> dict[str, Any]:
    """Return the fields of a task file with other labels, and a plain prompt that asks for them.

    A file of the user's own and a conversation are refused: a prompt of their own asks for their labels.
    """
    task = raw.get("name", "the task")
    if labels:
        if not builtin:
            raise ConfigError(f"--labels: {task!r} is a task file of yours; write the labels there, under `labels`.")
        if "turns" in raw:
            raise ConfigError(f"--labels: the task {task!r} is a conversation, which says itself how it ends.")
        plain = raw["kind"] if raw.get("kind") in ("decision", "multilabel") else "classification"
        kept = {key: raw[key] for key in _KEPT if key in raw}
        raw = filled({**kept, "kind": plain, "labels": list(labels)}, str(task))
    if favourable is not None:
        named = [str(one.get("name", "") if isinstance(one, dict) else one) for one in raw.get("labels") or ()]
        if not named:
            raise ConfigError(f"--favourable: the task {task!r} has no labels.")
        if favourable not in named:
            raise UnknownValue("--favourable", favourable, f"label of the task {task}", named)
        raw = {**raw, "favourable": favourable}
    return dict(raw)


def offered(said: Mapping[str, int], read: Iterable[str]) -> tuple[str, ...]:
    """Return the labels that answers show, where they look like labels of the model's own; else nothing.

    One label alone gets `OTHER` as its second. ``said`` counts the answers that could not be read, ``read`` are the
    labels that could.
    """
    words = {" ".join(text.split()): n for text, n in said.items()}
    plain = all(0 < len(w) <= LONGEST_LABEL and w.isprintable() and not set(w) & set(",{}[]<>\"'\\") for w in words)
    labels = tuple(sorted({*words, *read}))
    if not words or not plain or len(labels) > MOST_LABELS or 2 * len(words) > sum(words.values()):
        return ()
    return labels if len(labels) > 1 else (*labels, OTHER)


def foreign(instruction: str, names: Mapping[str, str]) -> str | None:
    """Return the first answer that ``instruction`` lists and that names no label; None where it lists none.

    ``names`` are the names of the labels in normal form (`auditor.tasks.answers.normalise`).
    """
    text = " ".join(instruction.split())
    for pattern in (_ONE_OF, _QUOTED, _BARE):
        for match in pattern.finditer(text):
            words = [word.strip().strip("\"'") for word in _BETWEEN.split(match.group(1))]
            for word in words if len(words) > 1 else ():
                plain = normalise(word)
                if plain not in names and bare(plain) not in names:
                    return word
    return None
