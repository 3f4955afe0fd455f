"""From rows of recorded answers to the table of observations, and what was left out on the way."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from auditor.contrib.imports import readings
from auditor.contrib.imports.answer_files import Column, Table, divided
from auditor.contrib.imports.mapping import Roles, decoded, fold, missing, number, spelled
from auditor.core.errors import ConfigError, DataFileError, UnknownValue
from auditor.core.shown import inline, quoted
from auditor.core.types import Answer, Edit
from auditor.measure.claims import Question
from auditor.measure.observations import STATUS, Arm, Observations, Shape, shape_of
from auditor.tasks.answers import Unclear, after_reasoning

WRITTEN = "as written"  # the group of a text that is not known to name any
UNIT = "points"
MOST_LABELS = 12  # that are compared where no label is good to get


@dataclass(kw_only=True, slots=True)
class Counted:
    """What became of the rows; texts and versions are counted after it."""

    rows: int = 0  # of the files
    used: int = 0  # that claims rest on
    elsewhere: int = 0  # left out by ``where``
    no_group: int = 0  # left out: edited without a group
    repeated: int = 0  # left out: the same answer again to the same replicate
    contradictory: int = 0  # left out: another answer to a replicate that had one
    no_text: int = 0  # left out: nothing names the text
    empty: int = 0  # without an answer
    unreadable: int = 0  # whose answer cannot be read
    texts: int = 0
    versions: int = 0
    without_original: int = 0  # texts that have no unchanged version
    without_placebo: int = 0
    unbalanced: dict[str, int] = field(default_factory=dict)  # attribute → texts that lack one of its groups


class Row(NamedTuple):
    """One answer with what its row says of the version."""

    text: str
    arm: Arm | None  # None: it follows from the groups
    groups: tuple[tuple[str, str], ...]
    label: str  # tells placebos of one text apart, and words of one group
    model: str
    format: str
    replicate: str | None
    before: tuple[tuple[str, str], ...]  # groups of the source text, where a column says them
    version: str  # its id, where a column says it
    source: str | None  # what its text was made of, where a column says it
    shape: Shape | None  # None: it follows from arm and groups
    place: int  # how much of its text comes before its first edit, in thousandths; 0 where nothing says it
    raw: str | None
    answer: Answer


@dataclass(slots=True)
class Said:
    """How often a model gave each label, what became of its other answers, and those that could not be read."""

    answers: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    unread: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """Observations, the question that they answer, and what was counted."""

    table: Observations
    question: Question
    counted: Counted
    models: Mapping[str, Said]


def observe(table: Table, roles: Roles, references: Mapping[str, str] | None = None) -> Imported:
    """Fill a table of observations; ``references`` are those that the user named beside the mapping.

    Raises `ConfigError` or `UnknownValue` where a column or a value is missing or nothing says who is compared,
    `DataFileError` where no row is left.
    """
    table, roles, read = tidied(divided(table, roles.parts), roles)
    counted = Counted(rows=len(table))
    rows = _distinct(_rows(table, roles, read, counted), counted)
    if not rows:
        lost = {k: v for k, v in dataclasses.asdict(counted).items() if isinstance(v, int) and v and k != "rows"}
        why = ", ".join(f"{k.replace('_', ' ')} {v:,}" for k, v in lost.items()) or "the table is empty"
        raise DataFileError(f"no row of {table.sources[0].file} counts: {why}")
    counted.used = len(rows)
    own = {row.text: dict(row.before or row.groups) for row in rows if row.before or row.arm == Arm.ORIGINAL}
    versions = _versions(rows, own)
    observations = Observations()
    observations.sources = _sources(rows)
    models: dict[str, Said] = {}
    for (text, shape, _, name, place), answers in versions.items():
        version = observations.shape(text, shape, name, place=place)
        for (model, format_), several in answers.items():
            observations.answers(version, model=model, format=format_, answers=several)
    for row in rows:
        said = models.setdefault(row.model, Said())
        said.answers += 1
        said.lost[row.answer.status] += row.answer.status != "ok"
        value = row.answer.value
        if roles.kind in ("label", "labels") and isinstance(value, str | tuple):
            said.labels[value if isinstance(value, str) else ", ".join(value) or "none"] += 1
        if row.raw is not None and row.answer.status == "unparsed":
            said.unread[row.raw] += 1
    _check_groups(observations, {**(roles.references if roles.edits is None else {}), **(references or {})})
    _count_design(observations, counted)
    return Imported(table=observations, question=_question(observations, roles), counted=counted, models=models)


def _check_groups(observations: Observations, references: Mapping[str, str]) -> None:
    """Refuse a reference that no row is about."""
    known: dict[str, dict[str, None]] = {}
    for shape in observations.shapes.values:
        for attribute, *groups in shape.directions:
            known.setdefault(attribute, {}).update((g, None) for g in groups if not g.startswith(WRITTEN))
    for attribute, group in references.items():
        if attribute not in known:
            raise UnknownValue("reference", attribute, "attribute", known)
        if group not in known[attribute]:
            raise UnknownValue("reference", group, f"group of {attribute}", sorted(known[attribute]))


def _rows(table: Table, roles: Roles, read: Sequence[Answer], counted: Counted) -> Iterator[Row]:
    columns = table.columns
    shapes: dict[str, Shape] = {}

    def name(names: tuple[str, ...], row: int, otherwise: str) -> str:
        return " · ".join(columns[n][row] or "" for n in names) or otherwise

    for n in range(len(table)):
        if any(columns[c][n] not in wanted for c, wanted in roles.where.items()):
            counted.elsewhere += 1
            continue
        if all(columns[name][n] is None for name in roles.text):
            counted.no_text += 1
            continue
        label = (columns[roles.word][n] or "") if roles.word else ""
        arm = None
        if roles.arm is not None:
            said = columns[roles.arm.column][n]
            arm = Arm.ORIGINAL if (said or "") in roles.arm.original else Arm.EDITED
            if arm == Arm.EDITED and said in roles.arm.placebo:
                arm = Arm.PLACEBO
                label = f"{said} {(columns[roles.long.group][n] or '') if roles.long else ''}"
        groups, unmarked = _groups(columns, roles, n, arm)
        if unmarked and not groups and arm is None:
            arm = Arm.ORIGINAL
        if arm in (None, Arm.EDITED) and not groups and roles.edits is None:
            counted.no_group += 1
            continue
        raw = columns[roles.answer][n]
        answer = _of_status(read[n], columns, roles, n)
        counted.empty += raw is None and answer.status == "unparsed"
        counted.unreadable += raw is not None and answer.status == "unparsed"
        edits = columns[roles.edits][n] if roles.edits else None
        if edits is not None and edits not in shapes:
            shapes[edits] = shape_of(decoded(edits, tuple[Edit, ...], "the edits of a version"))
        yield Row(
            text=name(roles.text, n, "text"),
            arm=arm,
            groups=groups,
            label=label,
            model=name(roles.model, n, "recorded"),
            format=name(roles.format, n, "recorded"),
            replicate=columns[roles.replicate][n] if roles.replicate else None,
            version=(columns[roles.version][n] or "") if roles.version else "",
            shape=None if edits is None else shapes[edits],
            place=int(columns[roles.place][n] or 0) if roles.place else 0,
            source=columns[roles.source][n] if roles.source else None,
            before=tuple((a, v) for a, c in roles.original.items() if (v := columns[c][n]) is not None),
            raw=raw,
            answer=answer,
        )


def _groups(
    columns: Mapping[str, list[str | None]], roles: Roles, n: int, arm: Arm | None
) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Return the groups that a row names, and whether a column says that it names nobody in particular."""
    named: dict[str, str] = {}
    unmarked = False
    pairs = [(attribute, columns[c][n], c) for attribute, c in roles.groups.items()]
    if roles.long is not None and arm in (None, Arm.EDITED):
        pairs.append((columns[roles.long.attribute][n] or "", columns[roles.long.group][n], roles.long.group))
    for attribute, value, column in pairs:
        if value is None:
            continue
        own = roles.arm is not None and column == roles.arm.column and value in roles.arm.original
        if own or value in roles.unmarked.get(attribute, ()):
            unmarked = True
        elif column in roles.split:
            named |= roles.split[column].get(value, {})
        elif attribute:
            named[attribute] = value
    return tuple(sorted(named.items())), unmarked


def _of_status(answer: Answer, columns: Mapping[str, list[str | None]], roles: Roles, n: int) -> Answer:
    """Return ``answer`` unless a column says that the call was lost, with the score beside it."""
    said = columns[roles.status][n] if roles.status is not None else None
    if said in STATUS and said != "ok":
        return Answer(status=said)  # type: ignore[arg-type]
    graded = roles.kind in ("label", "labels", "text")
    score = number(columns[roles.score][n] or "") if graded and roles.score is not None else None
    return answer if score is None or answer.status != "ok" else dataclasses.replace(answer, number=score)


def _distinct(rows: Iterator[Row], counted: Counted) -> list[Row]:
    """Rows without those that say again, or otherwise, what another has said of the same replicate."""
    seen: dict[tuple[object, ...], Answer] = {}
    kept = []
    for row in rows:
        if row.replicate is not None:
            key = row[:-2]
            if key in seen:
                same = seen[key] == row.answer
                counted.repeated += same
                counted.contradictory += not same
                continue
            seen[key] = row.answer
        kept.append(row)
    return kept


def _sources(rows: Iterable[Row]) -> dict[str, str]:
    """What each text was made of, of those that say it."""
    sources: dict[str, str] = {}
    for row in rows:
        if row.source is not None and sources.setdefault(row.text, row.source) != row.source:
            raise DataFileError(f"the text {row.text!r} has two sources: {sources[row.text]!r} and {row.source!r}")
    return sources


Versions = dict[tuple[str, Shape, str, str, int], dict[tuple[str, str], list[Answer]]]


def _versions(rows: list[Row], own: Mapping[str, Mapping[str, str]]) -> Versions:
    """Versions in the order of their first answers, with the answers by model and format."""
    out: Versions = {}
    made: dict[tuple[object, ...], list[Shape]] = {}
    for row in rows:
        key = (*row[:4], row.version, row.shape)
        if key not in made:
            made[key] = list(_shapes(row, own))
        for shape in made[key]:
            label = row.label if shape.arm == Arm.PLACEBO else ""
            answers = out.setdefault((row.text, shape, label, row.version, row.place), {})
            answers.setdefault((row.model, row.format), []).append(row.answer)
    return out


def _shapes(row: Row, own: Mapping[str, Mapping[str, str]]) -> Iterator[Shape]:
    """What a row is a version of: one shape, or one for each attribute where no text is known as the unchanged one."""
    if row.shape is not None:
        yield row.shape
        return
    if row.arm in (Arm.ORIGINAL, Arm.PLACEBO):
        placebo = row.arm == Arm.PLACEBO
        yield Shape(row.arm, (), (), (), (row.label,) if placebo else (), int(placebo), 0, 0)
        return
    if row.text in own:
        before = own[row.text]
        changed = [(a, before.get(a, WRITTEN), g) for a, g in row.groups if before.get(a) != g]
        if not changed:
            yield Shape(Arm.ORIGINAL, (), (), (), (), 0, 0, 0)
            return
        if len(changed) == 1 or any(a in before for a, _, _ in changed):
            yield _edited(tuple(changed), row)
            return
    for attribute, group in row.groups:
        # All versions are alike edited: what is compared differs in this attribute alone.
        rest = ", ".join(f"{a} {g}" for a, g in row.groups if a != attribute)
        yield _edited(((attribute, f"{WRITTEN}, {rest}" if rest else WRITTEN, group),), row)


def _edited(directions: tuple[tuple[str, str, str], ...], row: Row) -> Shape:
    attributes = tuple(sorted({a for a, _, _ in directions}))
    words = (row.label,) if row.label else ()
    return Shape(Arm.EDITED, attributes, directions, (), words, len(directions), 0, 0)


def _count_design(table: Observations, counted: Counted) -> None:
    columns = table.columns()
    shapes = table.shapes.values
    arms: dict[Arm, set[int]] = {}
    groups: dict[str, dict[int, set[str]]] = {}
    for text, code in zip(columns.version_text.tolist(), columns.version_shape.tolist(), strict=True):
        arms.setdefault(shapes[code].arm, set()).add(text)
        for attribute, source, group in shapes[code].directions:
            here = groups.setdefault(attribute, {}).setdefault(text, set())
            here |= {name for name in (source, group) if not name.startswith(WRITTEN)}
    counted.texts = len(table.texts.values)
    counted.versions = len(columns.version_text)
    counted.without_original = counted.texts - len(arms.get(Arm.ORIGINAL, ()))
    counted.without_placebo = counted.texts - len(arms.get(Arm.PLACEBO, ()))
    for attribute, by_text in groups.items():
        every = set().union(*by_text.values())
        counted.unbalanced[attribute] = counted.texts - sum(named == every for named in by_text.values())


def _question(table: Observations, roles: Roles) -> Question:
    sources = {
        (attribute, source)
        for shape in table.shapes.values
        for attribute, source, _ in shape.directions
        if source.startswith(WRITTEN)
    }
    named = {name for name, _ in sources} | set(roles.unmarked)
    unmarked = {a: [s for name, s in sources if name == a] + [*roles.unmarked.get(a, ())] for a in named}
    labels = roles.kind in ("label", "labels")
    return Question(
        outcomes=roles.favourable or _most_frequent(table) if labels else (),
        number=not labels and roles.kind != "text",
        unit=roles.unit or ("" if roles.edits else UNIT),
        references=dict(roles.references),
        primary=dict(roles.primary),
        unmarked=unmarked,
        graded=frozenset(roles.graded),
        positive_control=dict(roles.control),
        delta=roles.delta,
    )


def _most_frequent(table: Observations) -> tuple[str, ...]:
    """Return the labels of sets of labels that were given most often."""
    codes = Counter(table.columns().label.tolist())
    counts: Counter[str] = Counter()
    for code, value in enumerate(table.labels.values):
        counts.update(dict.fromkeys(value if isinstance(value, tuple) else (), codes[code]))
    return tuple(sorted(label for label, _ in counts.most_common(MOST_LABELS)))


# -- a table made plain: a row for each answer, one spelling for each group, answers that are read -----------


SHOWN = 80  # characters of an answer in a message
ABOUT = ("model", "format", "replicate")  # what a column of answers may be about besides groups


def tidied(table: Table, roles: Roles) -> tuple[Table, Roles, tuple[Answer, ...]]:
    """Return a table with one spelling for each group, its roles as they are then, and the answer of each row."""
    if roles.wide:
        table, roles = _long(table, roles)
    roles.check(table)
    if roles.edits is not None:  # a table that a run was written to: nothing is guessed
        return table, roles, tuple(_written(v, roles) for v in table.columns[roles.answer])
    columns = dict(table.columns)
    longs = (roles.long.attribute, roles.long.group) if roles.long else ()
    for name in {*roles.groups.values(), *longs, *roles.original.values()} & set(columns):
        arms = (*roles.arm.original, *roles.arm.placebo) if roles.arm and roles.arm.column == name else ()
        kept = {*arms, *(v for values in roles.unmarked.values() for v in values)}
        values = [None if missing(v) and v not in kept else v for v in columns[name]]
        named = [*roles.references.values(), *roles.split.get(name, ()), *kept]
        spelling = spelled(filter(None, values), named)
        columns[name] = [v and spelling[v] for v in values]
    columns[roles.answer] = [None if missing(v) else v for v in columns[roles.answer]]
    return Table(columns=columns, sources=table.sources), roles, _read(columns, roles)


EMPTY = Answer(status="unparsed", reason="empty")


def _written(raw: str | None, roles: Roles) -> Answer:
    """Return an answer that a run wrote."""
    value: str | tuple[str, ...] | float | None = raw
    if raw is not None and roles.kind == "labels":
        value = decoded(raw, tuple[str, ...], "a list of labels")
    elif raw is not None and roles.kind == "number":
        value = number(raw)
    return Answer(status="unparsed" if value is None else "ok", value=value)


def _read(columns: Mapping[str, Column], roles: Roles) -> tuple[Answer, ...]:
    column, kind = columns[roles.answer], roles.kind
    if (own := roles.favourable or roles.labels) and kind not in ("label", "labels"):
        raise ConfigError(f"{quoted(own[0])} is a label, but answers are read as kind = {kind!r}, which has none")
    if kind in ("label", "labels"):
        labels = roles.labels or readings.labels_of(column, kind, roles.field).labels
        if kind == "label" and not roles.favourable:
            named = f"{', '.join(map(quoted, labels[:8]))}{' …' if len(labels) > 8 else ''}"
            raise ConfigError(
                f"it is not known which answer is good to get: {named}. Say --favourable LABEL, or favourable in "
                "import.toml"
            )
        good = {fold(label): label for label in roles.favourable}
        if lacking := [good[name] for name in good if name not in map(fold, labels)]:
            raise UnknownValue("favourable", lacking[0], f"answer in the column {roles.answer}", labels)
        read = readings.reading(_texts(column), kind, [good.get(fold(label), label) for label in labels], roles.field)
        _check_labels(column, roles, read)
    elif kind == "number":
        read = readings.numbers(column, roles.field)
    elif kind == "text":
        read = readings.reading(_texts(column), kind, (), None)
    else:
        read = {v: _counted(v, roles) for v in _texts(column)}
    if not any(answer.status != "unparsed" for answer in read.values()):
        example = next(iter(read), None)
        such = "all are empty" if example is None else f"one is {inline(example[:SHOWN])!r}"
        raise ConfigError(
            f"no answer in the column {quoted(roles.answer)} can be read as kind = {kind!r}: {such}. Say what the "
            'answers are: --labels LABEL,LABEL, or --kind number, words or text; field = "KEY" names the key of JSON'
        )
    return tuple(EMPTY if v is None else read[v] for v in column)


def _texts(column: Column) -> list[str]:
    return list(dict.fromkeys(v for v in column if v is not None))


def _check_labels(column: Column, roles: Roles, read: Mapping[str, Answer]) -> None:
    """Refuse a label of the mapping that no answer has where an answer that cannot be read looks like it."""
    values = {v for a in read.values() for v in (a.value if isinstance(a.value, tuple) else (a.value,))}
    unread = [raw for raw, answer in read.items() if answer.status == "unparsed"]
    for label in roles.labels:
        near = difflib.get_close_matches(fold(label), map(fold, unread), n=1)
        if label not in values and near:
            raise UnknownValue("labels", label, f"answer in the column {roles.answer}", readings.shown(column))


def _counted(raw: str, roles: Roles) -> Answer:
    """Count the words of an answer, or the matches of the pattern, its reasoning set aside."""
    try:
        text = after_reasoning(raw)
    except Unclear as error:
        return Answer(status="unparsed", reason=str(error))
    n = len(text.split() if roles.kind == "words" else re.findall(roles.pattern, text, re.IGNORECASE))
    return Answer(status="ok", value=float(n))


def _long(table: Table, roles: Roles) -> tuple[Table, Roles]:
    """A row for each answer, where a row had one answer for each of several groups."""
    if lacking := [name for name in roles.wide if name not in table.columns]:
        raise UnknownValue("wide", lacking[0], "column", table.columns)
    added = list(dict.fromkeys(a for groups in roles.wide.values() for a in groups))
    attributes = [name for name in added if name not in ABOUT]
    size = len(table)
    rest = [name for name in table.columns if name not in roles.wide]
    if taken := [name for name in (*added, roles.answer) if name in rest]:
        raise ConfigError(f"wide: the table has a column {taken[0]!r} already; call the answer another name")
    columns: dict[str, Column] = {name: table.columns[name] * len(roles.wide) for name in rest}
    for attribute in added:
        columns[attribute] = [g.get(attribute) for g in roles.wide.values() for _ in range(size)]
    columns[roles.answer] = [value for name in roles.wide for value in table.columns[name]]
    groups = dict(roles.groups) | {name: name for name in attributes}
    more = {role: role if role == "replicate" else (role,) for role in ABOUT if role in added}
    longer = roles.model_copy(update={"groups": groups, **more})
    return type(table)(columns=columns, sources=table.sources), longer
