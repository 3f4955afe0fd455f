"""Which column says what: inferred from a table, shown, written to ``import.toml`` and read from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from auditor.contrib.imports import joint
from auditor.contrib.imports.spelling import fold, numbers, spelled
from auditor.contrib.imports.tables import FILE, Column, Table, named
from auditor.core import userfile
from auditor.core.decoded import from_toml
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.shown import quoted

Names = Annotated[tuple[str, ...], BeforeValidator(lambda v: (v,) if isinstance(v, str) else v)]
Kind = Literal["label", "labels", "number", "words", "matches", "text"]
BESIDE = ".import.toml"  # what stands beside a table of answers that a run was written to
LONG_ANSWER = 60  # characters in the mean, from which an answer is a text
FEW = 400  # different values of a column that names groups, at the most
ORIGINAL = ("baseline", "original", "unchanged", "control", "base")
PLACEBO = ("placebo", "noop", "irrelevant")
FAVOURABLE = (
    "invite", "yes", "approve", "approved", "accept", "accepted", "hire", "hired", "interview", "grant", "granted",
    "positive", "recommend", "true", "1",
)  # fmt: skip
ROLES: dict[str, tuple[str, ...]] = {
    "text": (
        "text_id", "pair_id", "pair", "case", "case_id", "item", "item_id", "prompt_id", "question_id", "note", "job",
        "vignette", "scenario", "template", "resume", "vignette_id", "scenario_id", "template_id", "resume_id",
        "job_id", "example_id", "id", "testidx", "question", "occupation", "job_title", "position",
    ),
    "model": (
        "model", "model_name", "llm", "engine", "model_id", "output.model", "response.body.model", "provider.id",
        "attributes.gen_ai.request.model",
    ),
    "format": ("format", "prompt_format", "strategy", "prompt_strategy", "condition", "prompt"),
    "replicate": ("replicate", "run", "repeat", "repetition", "sample", "trial", "iteration", "seed", "epoch"),
    "answer": (
        "score", "rating", "answer", "label", "decision", "recommendation", "recommend_interview", "prediction",
        "response", "output", "completion", "salary", "summary", "justification", "output.completion", "last_message",
        "response.output", "response.body.choices.0.message.content", "outputs.output", "output.value",
    ),
    "gold": ("gold", "outcome", "truth", "correct_label", "target_label"),
    "word": ("word", "name", "first_name", "term"),
    "arm": ("arm", "kind_of_edit"),
}  # fmt: skip
LONG = (
    ("axis", "level"),
    ("attribute", "group"),
    ("attribute", "level"),
    ("dimension", "value"),
    ("factor", "level"),
)
ATTRIBUTES = (
    "gender", "sex", "race", "ethnicity", "age", "age_group", "religion", "nationality", "disability", "caste",
    "sexual_orientation", "identity", "group", "subgroup", "demographic", "persona",
)  # fmt: skip


class Arm(BaseModel):
    """The column that says what a version is for; every other value is an edited one."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    column: str
    original: Names = ()
    placebo: Names = ()


class Long(BaseModel):
    """Two columns for all attributes: the one names the attribute, the other its group."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    attribute: str
    group: str


class Roles(BaseModel):
    """The roles of the columns of a table in which one row is one answer.

    Attributes
    ----------
    text : tuple of str
        Columns that together name the source text: answers are compared within it.
    groups : mapping
        Attribute → the column that names its group.
    long : Long, optional
        Instead of, or beside, ``groups``.
    source : str, optional
        Column that says what texts were made of: texts of one source are one unit.
    original : mapping
        Attribute → the column with the group that the source text had before anything was changed.
    arm : Arm, optional
        What says which versions are the unchanged text, and which placebos.
    split : mapping
        Column of ``groups`` → its value → the groups that it stands for: ``identity."black woman"``.
    word : str, optional
        The word or name that states the group, where several do.
    model, format, replicate, gold : str or tuple, optional
        Columns; what they lack is "model", "recorded", the order of the rows, unknown.
    answer, kind : str
        The column of answers and what is taken of it: the label, the number, how many words were written, or how many
        of them ``pattern`` matches.
    pattern : str, optional
        A regular expression, for matches; upper and lower case are alike.
    parts : mapping
        Column → a regular expression whose named groups become columns.
    wide : mapping
        Column of answers → the groups that it is about, where a row has several: ``wide."black woman"``.
    minus : str, optional
        A column that is taken from the answer, which is a number: log-probabilities of two labels.
    favourable : tuple of str
        Labels that are good to get.
    unit : str
        What numbers count in.
    where : mapping
        Column → the values of rows that count; other rows are left out and counted.
    references : mapping
        Attribute → the group that all others are compared with.
    task : str
        What the run is called.
    status, score : str, optional
        Columns: what became of a call ("ok", "refused", "unparsed", "failed"), the log odds beside a label.
    delta : float, optional
        Largest net difference that counts as none.
    edits, version : str, optional
        Columns of a table that a run was written to: what was changed, as JSON, and the id of the changed text.
    primary, unmarked : mapping
        Attribute → the pair that is compared first; groups that name nobody in particular.
    graded : tuple of str
        Formats whose answers are a number from 0 to 100 beside a label.
    control : mapping
        Model → whether texts that need different answers got them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    text: Names = Field(min_length=1)
    answer: str
    kind: Kind = "label"
    favourable: Names = ()
    unit: str = ""
    groups: Mapping[str, str] = Field(default_factory=dict)
    long: Long | None = None
    source: str | None = None
    original: Mapping[str, str] = Field(default_factory=dict)
    arm: Arm | None = None
    split: Mapping[str, Mapping[str, Mapping[str, str]]] = Field(default_factory=dict)
    word: str | None = None
    model: Names = ()
    format: Names = ()
    replicate: str | None = None
    gold: str | None = None
    where: Mapping[str, Names] = Field(default_factory=dict)
    references: Mapping[str, str] = Field(default_factory=dict)
    pattern: str = ""
    parts: Mapping[str, str] = Field(default_factory=dict)
    wide: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)
    minus: str | None = None
    task: str = "imported"
    status: str | None = None
    score: str | None = None
    delta: float | None = None
    edits: str | None = None
    version: str | None = None
    primary: Mapping[str, tuple[str, str]] = Field(default_factory=dict)
    unmarked: Mapping[str, Names] = Field(default_factory=dict)
    graded: Names = ()
    control: Mapping[str, bool] = Field(default_factory=dict)

    def columns(self) -> list[str]:
        """Every column that is named, once."""
        named = [*self.text, self.answer, *self.groups.values(), *self.original.values(), *self.where]
        named += [
            *self.model,
            *self.format,
            *filter(
                None,
                (
                    self.source,
                    self.replicate,
                    self.gold,
                    self.word,
                    self.status,
                    self.score,
                    self.edits,
                    self.version,
                ),
            ),
        ]
        named += [self.long.attribute, self.long.group] if self.long else []
        return list(dict.fromkeys([*named, *([self.arm.column] if self.arm else [])]))

    def check(self, table: Table) -> None:
        """Refuse columns that the table lacks, and roles that leave nothing to compare.

        Raises
        ------
        ConfigError
            The column, and those that there are.
        """
        if missing := [name for name in self.columns() if name not in table.columns]:
            raise ConfigError(
                f"no column {quoted(missing[0])} in {table.sources[0].file}; it has {named(table.columns)}"
            )
        if not self.groups and self.long is None and self.edits is None:
            raise ConfigError(
                "no column names a group, so there is nobody to compare. Name it in import.toml: "
                '[groups] gender = "COLUMN", or [long] attribute = "COLUMN", group = "COLUMN"'
            )
        if self.kind in ("label", "labels") and not self.favourable and self.edits is None:
            labels = sorted({v for v in table.columns[self.answer] if v is not None})
            raise ConfigError(
                f"it is not known which answer is good to get: {', '.join(map(quoted, labels[:8]))}"
                f"{' …' if len(labels) > 8 else ''}. Say --favourable LABEL, or favourable in import.toml"
            )


def infer(table: Table, answer: str | None = None) -> Roles:
    """Guess the roles from names of columns and their values; ``answer`` names that of answers.

    Raises
    ------
    ConfigError
        No column of texts or of answers was recognised; the ones that there are are named.
    """
    known = _named(table)
    taken: set[str] = set()

    def pick(role: str) -> str | None:
        for wanted in ROLES[role]:
            name = known.get(wanted)
            if name is not None and name not in taken:
                taken.add(name)
                return name
        return None

    long = next(
        (
            Long(attribute=known[a], group=known[g])
            for a, g in LONG
            if {a, g} <= set(known) and _few(table.columns[known[a]])
        ),
        None,
    )
    taken |= {long.attribute, long.group} if long else set()
    groups = {}
    for wanted in ATTRIBUTES if long is None else ():
        name = known.get(wanted)
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
    arm = _arm(
        table, [c for c in (known.get("arm"), long.attribute if long else None, known.get("variant")) if c]
    )
    parts = {column: found for column in groups.values() if (found := joint.split(table.columns[column]))}
    varied = [*groups.values(), *([long.group] if long else []), *filter(None, [known.get("word")])]
    texts = [known[n] for n in ROLES["text"] if n in known and known[n] not in taken]
    text = next((t for t in texts if _compares(table, (t,), varied)), next(iter(texts), None))
    taken |= {text} if text else set()
    answer = answer or pick("answer")
    if text is None or answer is None:
        what = "which column names the text (or the pair)" if text is None else "which column has the answer"
        raise ConfigError(
            f"it is not clear {what}. The columns are {named(table.columns)}; name the roles in a "
            'file, text = "COLUMN" and answer = "COLUMN", and give it with --map. Where each group has a column of '
            'answers: [wide."COLUMN"] gender = "female"; where labels have log-probabilities: answer and minus'
        )
    roles = Roles(
        text=(text,),
        answer=answer,
        groups=groups,
        long=long,
        original=original,
        arm=arm,
        split=parts,
        where={c: tuple(values) for c, values in parts.items() if {*table.columns[c]} - {*values, None}},
        word=pick("word"),
        model=tuple(filter(None, [pick("model") or _by_file(table, text, varied)])),
        format=tuple(f for f in [pick("format")] if f and _compares(table, (text, f), varied)),
        replicate=pick("replicate"),
        gold=pick("gold"),
    )
    return about(table, roles, answer)


def about(table: Table, roles: Roles, answer: str) -> Roles:
    """``roles`` with another column of answers, read as its values look.

    Raises
    ------
    ConfigError
        There is no such column.
    """
    if answer not in table.columns:
        raise ConfigError(f"no column {quoted(answer)}; there are {named(table.columns)}")
    kind = _kind(table.columns[answer])
    said = spelled(v for v in table.columns[answer] if v is not None) if kind == "label" else {}
    labels = {fold(v): v for v in said.values()}
    good = tuple(labels[v] for v in FAVOURABLE if v in labels)[:1]
    kept = tuple(v for v in roles.favourable if fold(v) in labels)
    unit = "words" if kind == "words" else ""
    return roles.model_copy(update={"answer": answer, "kind": kind, "unit": unit, "favourable": kept or good})


def _named(table: Table) -> dict[str, str]:
    """Columns by their names in small letters, and by what stands behind the last dot where only one has it."""
    whole = {name.lower(): name for name in table.columns}
    ends: dict[str, list[str]] = {}
    for name in table.columns:
        ends.setdefault(name.lower().rpartition(".")[2], []).append(name)
    return {end: names[0] for end, names in ends.items() if len(names) == 1} | whole


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


def _kind(column: Column) -> Kind:
    """Numbers where nearly all answers are, with more than two different ones; texts where they are long."""
    given = [v for v in column if v is not None]
    read = [v for v in numbers(column) if v is not None]
    if given and len(read) >= 0.8 * len(given) and len(set(read)) > 2:
        return "number"
    return "words" if given and sum(map(len, given)) > LONG_ANSWER * len(given) else "label"


def number(value: str) -> float | None:
    """The number that a field holds, or None."""
    try:
        found = float(value)
    except ValueError:
        return None
    return found if abs(found) < float("inf") else None


def _arm(table: Table, candidates: Sequence[str]) -> Arm | None:
    for name in candidates:
        values = sorted({v for v in table.columns[name] if v is not None})
        original, placebo = _like(values, ORIGINAL), _like(values, PLACEBO)
        if original or placebo:
            return Arm(column=name, original=original, placebo=placebo)
    return None


def _like(values: Iterable[str], wanted: Sequence[str]) -> tuple[str, ...]:
    return tuple(v for v in values if any(v.lower() == w or v.lower().startswith(f"{w}_") for w in wanted))


def load(path: Path) -> Roles:
    """Read ``import.toml``.

    Raises
    ------
    DataFileError
        It cannot be read, or is no TOML.
    ConfigError
        A role is missing or not known.
    """
    try:
        given = from_toml(userfile.text(path))
    except FileNotFoundError:
        raise DataFileError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise DataFileError(f"{path}: {error}") from None
    try:
        return Roles.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(
            f"{path}: {where}: {first['msg']}. Roles are {', '.join(Roles.model_fields)}"
        ) from None


def dump(roles: Roles) -> str:
    """``roles`` as TOML; what has its default is left out."""
    import tomli_w

    def plain(value: object) -> object:
        if isinstance(value, tuple | list):
            return value[0] if len(value) == 1 else list(value)
        return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value

    given = roles.model_dump(exclude_defaults=True, exclude_none=True)
    return tomli_w.dumps({k: plain(v) for k, v in given.items()})
