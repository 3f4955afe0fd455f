"""Roles of columns, inferred from their names and values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from auditor.contrib.imports import readings
from auditor.contrib.imports.answer_files import FILE, KNOWN, Column, Table, divided, named
from auditor.contrib.imports.mapping import Arm, Kind, Long, Roles, dump, fold, missing
from auditor.core.errors import ConfigError, UnknownValue
from auditor.core.shown import inline, quoted
from auditor.tasks.load import MOST_LABELS

MISSING = "?"  # a role without a column
SHOWN = 60  # characters of an answer in a message
FEW = 400  # different values of a column that names groups, at the most


_RUNS = re.compile(r"\b(?:run|rep|replicate|repeat|repetition|trial|iteration|seed|epoch)[ _-]?\d", re.IGNORECASE)


class Undecided(ConfigError):
    """A role has no column yet, or it is not clear how answers are read; ``proposal`` is ``import.toml`` so far."""

    def __init__(self, message: str, proposal: str) -> None:
        super().__init__(message)
        self.proposal = proposal


def infer(table: Table, answer: str | None = None, settings: Mapping[str, object] | None = None) -> Roles:
    """Guess the roles from names of columns and their values.

    ``answer`` names the column of answers; ``settings`` are roles that the user named.
    """
    if answer is not None and answer not in table.columns:
        raise UnknownValue("--answer", answer, "column", table.columns)
    known = _named(table)
    taken: set[str] = {answer} if answer else set()

    def pick(role: str) -> str | None:
        for wanted in KNOWN.roles[role]:
            name = known.get(wanted)
            if name is not None and name not in taken:
                taken.add(name)
                return name
        return None

    long = next(
        (
            Long(attribute=known[a], group=known[g])
            for a, g in KNOWN.long
            if {a, g} <= set(known) and not {known[a], known[g]} & taken and _few(table.columns[known[a]])
        ),
        None,
    )
    taken |= {long.attribute, long.group} if long else set()
    groups = {}
    for wanted in KNOWN.attributes if long is None else ():
        name = known.get(wanted) or _whose(table, wanted)
        if name is not None and name not in taken and _few(table.columns[name]):
            groups[wanted] = name
            taken.add(name)
    original = {
        attribute: name
        for attribute, column in groups.items()
        for name in table.columns
        if name not in taken and "original" in name.lower() and column.lower() in name.lower()
    }
    taken |= set(original.values())
    arm = _arm(table, [c for c in (known.get("arm"), long.attribute if long else None, known.get("variant")) if c])
    unmarked, references = _controls(table, groups, long)
    varied = [*groups.values(), *([long.group] if long else []), *filter(None, [known.get("word")])]
    texts = [known[n] for n in KNOWN.roles["text"] if n in known and known[n] not in taken]
    text = next((t for t in texts if _compares(table, (t,), varied)), None)
    taken |= {text} if text else set()
    answer = answer or pick("answer") or _answered(table, taken)
    taken |= {answer} if answer else set()
    word, model = pick("word"), pick("model")
    by_file = _by_file(table, text, varied) if text and not model else None
    files = "replicate" if by_file and _RUNS.search(" ".join(filter(None, set(table.columns[FILE])))) else "model"
    roles = Roles(
        text=(text or MISSING,),
        answer=answer or MISSING,
        groups=groups,
        long=long,
        original=original,
        arm=arm,
        unmarked=unmarked,
        references=references,
        word=word,
        model=tuple(filter(None, [model or (by_file if files == "model" else None)])),
        format=tuple(f for f in [pick("format")] if f and (text is None or _compares(table, (text, f), varied))),
        replicate=pick("replicate") or (by_file if files == "replicate" else None),
        gold=pick("gold"),
    )
    if text and answer:
        return about(table, roles, answer, settings)
    raise Undecided(_lacking(table, roles, texts, varied), proposed(roles))


def _lacking(table: Table, roles: Roles, texts: Sequence[str], varied: Sequence[str]) -> str:
    """Say which role has no column, and what its column would be like."""
    said = []
    if roles.text[0] == MISSING:
        said.append("which column names the text (or the pair), which versions for several groups have in common")
    if roles.answer == MISSING:
        said.append("which column has the answer")
    tried = f" {quoted(texts[0])} has another value for each group." if texts and roles.text[0] == MISSING else ""
    return (
        f"it is not clear {', nor '.join(said)}.{tried} The columns are {named(table.columns)}. Complete the roles in "
        'a file, text = "COLUMN" and answer = "COLUMN", and give it with --map. Where each group has a column of '
        'answers: [wide."COLUMN"] gender = "female"'
    )


def proposed(roles: Roles) -> str:
    """Return ``roles`` as TOML, in which roles that lack a column are comments."""
    lines = []
    for line in dump(roles).splitlines():
        role, _, value = line.partition(" = ")
        lines.append(f'# {role} = "COLUMN"   # missing' if value == f'"{MISSING}"' else line)
    if not (roles.groups or roles.long):
        lines += ['# groups = { gender = "COLUMN" }   # missing: a column that names a group']
    return "\n".join(lines) + "\n"


def about(table: Table, roles: Roles, answer: str, settings: Mapping[str, object] | None = None) -> Roles:
    """Return ``roles`` with another column of answers, read as ``settings`` say or as its values look."""
    if answer not in table.columns:
        raise UnknownValue("--answer", answer, "column", table.columns)
    column: Column = [None if missing(v) else v for v in table.columns[answer]]
    fields = readings.fields(column)
    field = fields[0] if len(fields) == 1 else None
    settings = settings or {}
    roles = roles.model_copy(update={"labels": (), **settings, "answer": answer, "field": field})
    labels = roles.labels
    if len(fields) > 1:
        raise Undecided(
            f"the answers in {quoted(answer)} are JSON, and it is not clear which key has the answer: "
            f'{", ".join(map(quoted, fields))}. Add field = "KEY" to the roles, and give them with --map',
            proposed(roles),
        )
    kind = roles.kind if "kind" in settings else _kind(column, field, labels)
    if kind is None:
        raise Undecided(
            f"the answers in {quoted(answer)} are neither numbers nor labels, such as "
            f"{next((inline(v)[:SHOWN] for v in column if v is not None), '')!r}. Name the labels (--labels yes,no), "
            "or say --kind words (how many were written) or --kind text (how they are written)",
            proposed(roles),
        )
    if kind not in ("label", "labels"):
        return roles.model_copy(update={"kind": kind, "unit": "words" if kind == "words" else "", "favourable": ()})
    seen = tuple(labels) or readings.labels_of(column, kind, field).labels
    by_fold = {fold(v): v for v in seen}
    good = tuple(by_fold[v] for v in KNOWN.favourable if v in by_fold)[:1] if kind == "label" else ()
    kept = tuple(v for v in roles.favourable if fold(v) in by_fold)
    shown = seen if len(seen) <= MOST_LABELS or labels else ()
    return roles.model_copy(update={"kind": kind, "unit": "", "favourable": kept or good, "labels": shown})


def with_favourable(table: Table, roles: Roles, favourable: Sequence[str]) -> Roles:
    """Return roles with ``favourable`` as the table spells it; `UnknownValue` where no answer is that label."""
    if not favourable:
        return roles
    labels = roles.labels
    if roles.kind in ("label", "labels") and not labels:
        columns = divided(table, roles.parts).columns
        column = [v for name in (*roles.wide, roles.answer) for v in columns.get(name, ())]
        labels = readings.labels_of(column, roles.kind, roles.field).labels
        labels += roles.favourable if roles.edits else ()
    there = {fold(label): label for label in labels}
    if unknown := [v for v in favourable if fold(v) not in there]:
        raise UnknownValue("--favourable", unknown[0], "answer", there.values())
    return roles.model_copy(update={"favourable": tuple(there[fold(v)] for v in favourable)})


def _plain(name: str) -> str:
    """Return the name of a column in small letters, its words joined by ``_``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\s\-]+", "_", name.strip()).lower()


def _named(table: Table) -> dict[str, str]:
    """Return columns by their plain names, and by what is behind the last dot where only one has it.

    A column whose whole name says its role (``provider.id``: a model) is known by that alone.
    """
    whole = {_plain(name): name for name in reversed(table.columns)}
    roles = {wanted for names in KNOWN.roles.values() for wanted in names}
    ends: dict[str, list[str]] = {}
    for name in table.columns:
        ends.setdefault(_plain(name).rpartition(".")[2], []).append(name)
    alone = {end: names[0] for end, names in ends.items() if len(names) == 1}
    return {end: name for end, name in alone.items() if _plain(name) not in roles} | whole


def _whose(table: Table, attribute: str) -> str | None:
    """Return the first column that says whose attribute it is: ``applicant_gender``, ``derived_race``."""
    like = re.compile(rf"(?:.*[_.])?{attribute}(?:_(?:group|label|category|code|\d+))?")
    columns = [c for c in table.columns if like.fullmatch(_plain(c)) and "original" not in c.lower()]
    return min(columns, key=lambda c: (len(set(table.columns[c])) < 2, columns.index(c)), default=None)


def _answered(table: Table, taken: Iterable[str]) -> str | None:
    """Return the column whose name ends as those of answers do, a model's first: ``llm_decision``."""
    alike = []
    for column in table.columns:
        owner, _, what = _plain(column).rpartition("_")
        if owner and column not in taken and what in KNOWN.roles["answer"] and not KNOWN.true & set(owner.split("_")):
            alike.append((not KNOWN.models & set(re.split(r"[_.]", owner)), column))
    best = [column for other, column in alike if other == min(alike)[0]]
    return best[0] if len(best) == 1 or (alike and not min(alike)[0]) else None


def _controls(
    table: Table, groups: Mapping[str, str], long: Long | None
) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Return values that name nobody in particular, by attribute, and the reference where one other group is left."""
    by_attribute: dict[str, list[str]] = {a: [v for v in table.columns[c] if v] for a, c in groups.items()}
    for attribute, value in zip(*(table.columns[c] for c in (long.attribute, long.group)), strict=True) if long else ():
        if attribute and value:
            by_attribute.setdefault(attribute, []).append(value)
    unmarked, references = {}, {}
    for attribute, values in by_attribute.items():
        controls = sorted(v for v in set(values) if _nobody(v))
        others = {fold(v) for v in values if not _nobody(v) and not missing(v)}
        if controls and len(others) > 1:
            unmarked[attribute] = tuple(controls)
        elif controls and others and not missing(controls[0]):
            references[attribute] = controls[0]
    return unmarked, references


def _compares(table: Table, within: Sequence[str], varied: Sequence[str]) -> bool:
    """Whether groups differ within these columns: not within an id of each row, nor within a whole prompt."""
    first: dict[tuple[str | None, ...], tuple[str | None, ...]] = {}
    columns = [[table.columns[name] for name in names] for names in (within, varied)]
    rows = zip(*(zip(*some, strict=True) for some in columns), strict=True) if varied else ()
    return not varied or any(first.setdefault(text, groups) != groups for text, groups in rows)


def _by_file(table: Table, text: str, varied: Sequence[str]) -> str | None:
    """The column of files, where most texts come again about the same group in another file: a model each."""
    if FILE not in table.columns:
        return None
    files: dict[tuple[str | None, ...], set[str | None]] = {}
    for file, *key in zip(*(table.columns[n] for n in (FILE, text, *varied)), strict=True):
        files.setdefault(tuple(key), set()).add(file)
    return FILE if 2 * sum(len(f) > 1 for f in files.values()) > len(files) else None


def _few(column: Column) -> bool:
    return len(set(column)) <= FEW


def _kind(column: Column, field: str | None, labels: Sequence[str]) -> Kind | None:
    """Numbers where nearly all answers are, with more than two different ones; else labels that are found in most."""
    answers = [v for v in column if v is not None]
    if not answers or labels:
        return "labels" if labels and readings.listed(column, field) else "label"
    read = readings.numbers(column, field)
    values = [read[v].value for v in answers if read[v].value is not None]
    if len(values) >= 0.8 * len(answers) and len(set(values)) > 2:
        return "number"
    kind: Kind = "labels" if readings.listed(column, field) else "label"
    seen = readings.labels_of(column, kind, field)
    return kind if seen.share >= 0.5 and len(seen.labels) <= max(MOST_LABELS, len(answers) // 2) else None


def _arm(table: Table, candidates: Sequence[str]) -> Arm | None:
    for name in candidates:
        values = sorted({v for v in table.columns[name] if v is not None})
        original, placebo = _like(values, KNOWN.original), _like(values, KNOWN.placebo)
        if original or placebo:
            return Arm(column=name, original=original, placebo=placebo)
    return None


def _like(values: Iterable[str], wanted: Sequence[str]) -> tuple[str, ...]:
    return tuple(v for v in values if any(v.lower() == w or v.lower().startswith(f"{w}_") for w in wanted))


def _nobody(value: str) -> bool:
    """Say whether a value of a column of groups names nobody in particular: the control arm."""
    words = [word for word in re.split(r"[\s_\-+,&()]+", value.lower()) if word]
    known = {word for phrase in KNOWN.nobody for word in phrase.split()}
    return (
        value.strip() != "Na" and known.issuperset(words) and (len(words) > 1 or value.strip().lower() in KNOWN.nobody)
    )
