"""Data that the user brings whole: pairs of texts, and requests that a product sent.

Pairs are asked as they are: no dictionary changes them, and no check leaves any out. In requests people are changed in
some of their messages, and all else is sent as it was.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import difflib
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.plan import Plan
from auditor.core.protocols import Model, Suite
from auditor.core.reading import from_json, text_lines, unpacked
from auditor.core.types import Answer, Case, Check, Edit, Prompt, SourceText, Variant, id_of, names
from auditor.models.openai import WHOLE as REQUEST
from auditor.models.openai import OpenAIChat
from auditor.tasks.seeds import SeedFile, from_file, text_file
from auditor.tasks.task import Task

if TYPE_CHECKING:
    import jsonpath

    JSONPath = jsonpath.JSONPath | jsonpath.CompoundJSONPath
    from auditor.contrib.imports.answer_files import Json

FIRST, SECOND = "text_a", "text_b"
WITHOUT = "group"  # what the attribute is called where no column says it
PLACEBO = "placebo"
TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
Groups = tuple[tuple[str, str, str], ...]  # attribute, group of the first text, of the second
ROLES = ("user",)  # whose messages are changed where the plan does not say
MESSAGES = "messages"
WITHIN = ("body", "request", "inputs", "input", "kwargs")  # where a log keeps the request
RULE = "="
DEEPEST = 40  # levels of a request or an answer; those of arguments come on top
LONGEST = 1 << 26  # bytes of a line that are looked at to tell what a file holds
Place = tuple[str | int, ...]


class Pair(NamedTuple):
    """Two texts that differ in who they are about, or in nothing that concerns a person."""

    text: str
    other: str
    groups: Groups
    placebo: bool
    label: str | None


class Span(NamedTuple):
    """A piece of the first text, and what stands there in the second."""

    start: int
    end: int
    source: str
    target: str


def spans(first: str, second: str) -> list[Span]:
    """What differs, word by word; changes with nothing but white space between them are one."""
    a, b = TOKEN.findall(first), TOKEN.findall(second)
    out: list[Span] = []
    at = new = 0
    for tag, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        source, target = "".join(a[i:j]), "".join(b[k:m])
        if tag != "equal":
            last = out[-1] if out else None
            between = first[last.end : at] if last else ""
            if last and not between.strip():
                out[-1] = Span(
                    last.start, at + len(source), last.source + between + source, last.target + between + target
                )
            else:
                out.append(Span(at, at + len(source), source, target))
        at, new = at + len(source), new + len(target)
    return out


def edits(pair: Pair) -> tuple[Edit, ...]:
    """What is changed from the first text to the second; where two attributes change, every span is of both."""
    changed = [(a, g, g) for a, g, _ in pair.groups] if pair.placebo else [g for g in pair.groups if g[1] != g[2]]
    return tuple(
        Edit(
            attribute=attribute,
            kind="placebo" if pair.placebo else "swap" if span.source else "insertion",
            source_group=before,
            target_group=after,
            source=span.source,
            target=span.target,
            where=(span.start, span.end),
        )
        for attribute, before, after in changed
        for span in spans(pair.text, pair.other)
    )


def suite_of(plan: Plan) -> Pairs | None:
    """The pairs that the file of texts of a plan holds, where it holds pairs."""
    if plan.data is None or not is_pairs(plan.data):
        return None
    refused = {
        "--suite": plan.suite != "mutation",
        "--protocol": plan.protocol != "default",
        "--dictionary": plan.dictionaries,
        "--attributes": plan.attributes,
        "--groups": plan.groups,
        "--carrier": plan.carrier,
        "--wordings": plan.wordings > 1,
        "--until-decided": plan.until_decided,
    }
    for flag in (flag for flag, asked in refused.items() if asked):
        raise ConfigError(f"{plan.data} holds pairs of texts, which are asked as they are; leave {flag} out.")
    return Pairs(str(plan.data), limit=plan.limit)


def is_pairs(data: str) -> bool:
    """Whether a file of texts holds two of them in a row."""
    if data.startswith("hf:") or not Path(data).is_file() or Path(data).suffix.lower() == ".txt":
        return False
    columns, rows = from_file(Path(data), text_file(Path(data)), FIRST)
    names = columns if columns is not None else next((list(row) for _, row in rows), [])
    return FIRST in names and SECOND in names


class Pairs(Suite):
    """Cases of a file with the columns ``text_a`` and ``text_b``.

    The groups stand in ``group_a`` and ``group_b`` (``attribute`` says of what), or in a pair of columns for each
    attribute: ``gender_a`` and ``gender_b``. ``arm`` marks placebo pairs, as do equal groups; ``label`` is the outcome
    that was right.
    Rows with the same first text are one case.
    """

    name = "pairs.v1"

    def __init__(self, source: str, *, limit: int | None = None) -> None:
        path = Path(source)
        raw = text_file(path)
        self.sha256, self.source = hashlib.sha256(raw).hexdigest(), source
        _, rows = from_file(path, raw, FIRST)
        by_text: dict[str, list[Pair]] = {}
        self.rows = 0
        for where, row in rows:
            if limit is not None and self.rows == limit:
                break
            self.rows += 1
            pair = self._pair(f"{source}, {where}", row)
            if pair is not None:
                # A placebo stands beside one attribute; its prompt is asked once all the same.
                apart = [pair._replace(groups=(one,)) for one in pair.groups] if pair.placebo else [pair]
                by_text.setdefault(pair.text, []).extend(apart)
        if not by_text:
            lost = ", ".join(f"{n} {reason}" for reason, n in self.skipped.most_common())
            raise DataFileError(f"{source}: no pair of texts ({lost or 'no rows'})")
        self.texts = len(by_text)
        self.groups: dict[str, set[str]] = {}
        for attribute, *both in (one for pairs in by_text.values() for pair in pairs for one in pair.groups):
            self.groups.setdefault(attribute, set()).update(both)
        cases = [_case(text, pairs) for text, pairs in by_text.items()]
        self.checks = {v.id: Check(variant_id=v.id, check=self.name, status="valid") for c in cases for v in c.variants}
        self._cases = iter(cases)

    def _pair(self, where: str, row: Mapping[str, object]) -> Pair | None:
        first, second = row.get(FIRST), row.get(SECOND)
        if not isinstance(first, str) or not isinstance(second, str) or not first.strip() or not second.strip():
            self.skipped["one text is missing"] += 1
            return None
        groups = _groups(row)
        if not groups:
            raise DataFileError(
                f"{where}: no groups. Give them in group_a and group_b (and their attribute in attribute), or in a "
                "pair of columns for each attribute, such as gender_a and gender_b"
            )
        placebo = _text(row.get("arm")) == PLACEBO or all(before == after for _, before, after in groups)
        if first == second:
            self.skipped["both texts are the same"] += 1
            return None
        return Pair(first, second, groups, placebo, _text(row.get("label")) or None)

    def ask(self, n: int, rng: Random) -> Sequence[Case]:
        """The next ``n`` texts with their pairs."""
        return [case for case, _ in zip(self._cases, range(n), strict=False)]

    def describe(self) -> Mapping[str, object]:
        """The file that was read."""
        return {"name": self.name, "sha256": self.sha256, "rows": self.rows}


def _case(text: str, pairs: Sequence[Pair]) -> Case:
    name = id_of("c", ["pairs", text])
    variants: dict[tuple[str, Groups], Variant] = {}
    for pair in pairs:
        kind = "p" if pair.placebo else "v"
        groups = {a: g if pair.placebo else after for a, g, after in pair.groups}
        variants.setdefault(
            (pair.other, pair.groups),
            Variant(id=f"{name}.{kind}{len(variants)}", input=pair.other, groups=groups, edits=edits(pair)),
        )
    own = {a: before for pair in pairs for a, before, _ in pair.groups}
    label = next((pair.label for pair in pairs if pair.label), None)
    original = Variant(id=f"{name}.o", input=text, groups=own)
    return Case(id=name, suite=Pairs.name, original=original, variants=tuple(variants.values()), label=label)


def _groups(row: Mapping[str, object]) -> Groups:
    groups = []
    for name, value in row.items():
        attribute = name.removesuffix("_a")
        if attribute == name or name == FIRST or f"{attribute}_b" not in row:
            continue
        before, after = _text(value), _text(row[f"{attribute}_b"])
        if before and after:
            named = (_text(row.get("attribute")) or WITHOUT) if attribute == WITHOUT else attribute
            groups.append((named, before, after))
    return tuple(sorted(groups))


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


# -- whole requests that a product sent -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A request, where its texts stand that are changed, and what stands between them in the text of a case."""

    body: Mapping[str, Json]
    places: tuple[Place, ...]
    between: str

    @property
    def text(self) -> str:
        """The texts that are changed, as one."""
        return self.between.join(str(_at(self.body, place)) for place in self.places)

    def with_text(self, text: str) -> str:
        """The request with the parts of ``text`` in their places, as JSON."""
        body = copy.deepcopy(dict(self.body))
        parts = text.split(self.between) if len(self.places) > 1 else [text]
        for place, part in zip(self.places, parts, strict=True):
            *way, last = place
            _at(body, tuple(way))[last] = part  # type: ignore[index]
        return json.dumps(body, ensure_ascii=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Traffic(Task):
    """A task whose question stands in the requests; it says how answers are read."""

    sent: Mapping[str, Sent] = dataclasses.field(compare=False, repr=False)  # by the text that is changed
    now: list[Sent] = dataclasses.field(compare=False, repr=False, default_factory=list)  # what is asked, if anything
    answer_path: str | None = None  # JSON path in the message (or the JSON) that comes back; None reads the whole text

    def about(self, original: object) -> None:
        """From now on texts are versions of ``original``, which may have a line in front that names a person."""
        texts = str(original), str(original).partition("\n\n")[2]
        self.now[:] = [self.sent[text] for text in texts if text in self.sent][:1]

    def bare(self, text: str) -> Prompt:
        """The whole request, for functions and programs."""
        return self._asking(text, "bare")

    def render(self, text: str, format: str | None = None) -> Prompt:
        """The whole request, for a server."""
        return self._asking(text, REQUEST)

    def _asking(self, text: str, format: str) -> Prompt:
        if not self.now:
            raise ConfigError("The file of requests is no longer what it was when this run began.")
        return Prompt(format=format, text=self.now[0].with_text(text))

    def read(self, output: str, style: Literal["chat", "text"] = "chat", format: str | None = None) -> Answer:
        """What the task reads in the answer, or in the part of it that ``answer_path`` names."""
        if self.answer_path is not None:
            try:
                message: Json = from_json(output, deepest=DEEPEST)
            except ValueError:
                message = {"content": output}
            there = _compiled(self.answer_path).findall(_opened(message if isinstance(message, dict | list) else {}))
            if not there:
                return Answer(status="unparsed", reason=f"nothing at {self.answer_path}")
            output = there[0] if isinstance(there[0], str) else json.dumps(there[0])
        return Task.read(self, output, "chat", format)


def require_models(models: Sequence[Model]) -> None:
    """Refuse models that cannot be sent a whole request."""
    for model in models:
        if model.style == "chat" and not isinstance(model, OpenAIChat):
            raise ConfigError(
                f"{model.name} cannot be sent whole requests. openai: models can; python:, exec: and http: models get "
                "the request as JSON."
            )


def is_traffic(data: str) -> bool:
    """Whether a file of texts holds whole requests."""
    if Path(data).suffix.lower() not in (".jsonl", ".ndjson") or not Path(data).is_file():
        return False
    with Path(data).open("rb") as file:
        first = next((line for line in iter(lambda: file.readline(LONGEST), b"") if line.strip()), b"")
    try:
        row = from_json(first, deepest=DEEPEST)
    except ValueError:
        return False
    return isinstance(row, dict) and is_request(row)


def is_request(row: Mapping[str, Json]) -> bool:
    """Whether a row is a whole request, or holds one."""
    return isinstance(_body(row).get(MESSAGES), list)


def read_requests(plan: Plan, task: Task) -> tuple[Traffic, SeedFile]:
    """The requests of ``plan.data`` as a task, and the texts of theirs that are changed."""
    path = Path(str(plan.data))
    raw = reading.content(path)
    wanted = names(plan.columns.get("messages", "")) or ROLES
    paths = list(_paths(wanted))
    answer_path = plan.columns.get("answer")
    if answer_path is not None:
        _compiled(answer_path)
    sent: dict[str, Sent] = {}
    texts: list[SourceText] = []
    rows = repeated = skipped = 0
    lines = ((n, line) for n, line in enumerate(text_lines(unpacked(path, raw)), 1) if line.strip())
    for number, line in itertools.islice(lines, plan.limit):
        rows += 1
        try:
            row = from_json(line, deepest=DEEPEST)
        except ValueError as error:
            raise DataFileError(f"{path}, line {number}: not JSON: {error}") from None
        if not isinstance(row, dict) or not is_request(row):
            raise DataFileError(f"{path}, line {number}: no request with messages")
        body = _body(row)
        # Where the texts stand that are changed, each once, in the order of the request.
        there = {tuple(match.parts) for path in paths for match in path.finditer(body) if isinstance(match.obj, str)}
        places = tuple(sorted(there, key=lambda place: [(isinstance(p, str), str(p).zfill(9)) for p in place]))
        parts = [str(_at(body, place)) for place in places]
        if not any(part.strip() for part in parts):
            skipped += 1
            continue
        rule = RULE * 5
        while any(rule in part for part in parts):
            rule += RULE
        one = Sent(body=body, places=places, between=f"\n\n{rule}\n\n")
        if one.text in sent:
            repeated += 1
            continue
        sent[one.text] = one
        outside = row if body is not row else {}
        label, name = outside.get("label"), outside.get("custom_id", outside.get("id"))
        own = str(name) if name else id_of("r", one.text)
        texts.append(SourceText(id=own, text=one.text, label=None if label is None else str(label)))
    if not texts:
        raise DataFileError(
            f"{path}: no request has a text in {', '.join(wanted)}. Name the roles of messages that are changed, "
            "or JSON paths: --column messages=user,'$.messages[0].content'"
        )
    asked = {f.name: getattr(task, f.name) for f in dataclasses.fields(Task)}
    asked |= {"formats": {REQUEST: task.formats[task.default_format]}, "default_format": REQUEST, "controls": ()}
    asked |= {"keep_words": None, "keep_characters": None}
    return Traffic(**asked, sent=sent, answer_path=answer_path), SeedFile(
        seeds=tuple(texts),
        rows=rows,
        skipped=skipped,
        repeated=repeated,
        sha256=hashlib.sha256(raw).hexdigest(),
        source=str(plan.data),
    )


def _body(row: Mapping[str, Json]) -> Mapping[str, Json]:
    for name in WITHIN:
        inner = row.get(name)
        if isinstance(inner, dict) and MESSAGES in inner:
            return inner
    return row


def _paths(wanted: Sequence[str]) -> Iterator[JSONPath]:
    """JSON paths of the texts that are changed: as they are given, and those of the messages of a role."""
    for name in wanted:
        content = f"$.{MESSAGES}[?@.role == {json.dumps(name)}].content"
        yield from map(_compiled, (name,) if name.startswith("$") else (content, f"{content}[*].text"))


def _at(body: object, place: Place) -> object:
    for step in place:
        body = body[step]  # type: ignore[index]
    return body


def _opened(value: Json) -> Json:
    """``value`` with the arguments of tool calls as objects, where they are JSON in a text."""
    if isinstance(value, list):
        return [_opened(one) for one in value]
    if not isinstance(value, dict):
        return value
    out = {name: _opened(inner) for name, inner in value.items()}
    if isinstance(arguments := out.get("arguments"), str):
        with contextlib.suppress(ValueError):
            out["arguments"] = from_json(arguments, deepest=DEEPEST)
    return out


def _compiled(path: str) -> JSONPath:
    import jsonpath

    try:
        return jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        raise ConfigError(f"{path!r} is no JSON path: {error}") from None
