"""The table of observations: one row for each answer, and everything that statistics need to know of it.

Versions of a text (the original, edited ones, placebos) have a row of their own in a second table, which the
answers point to, and so does what an oracle said of a version. All are columns of numbers: a run appends to them,
`audit import` fills them from a file, and rates and claims are group-bys on them.
"""

from __future__ import annotations

import enum
from array import array
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.core.types import NEUTRAL, Answer, AnswerStatus, Edit, Outcome, Verdict

Direction = tuple[str, str, str]  # attribute, source group, target group
Ints = NDArray[np.int64]
H = TypeVar("H", bound=Hashable)
OUTCOMES: dict[str, int] = {name: code for code, name in enumerate(get_args(Outcome))}
STATUSES: tuple[AnswerStatus, ...] = get_args(AnswerStatus)
STATUS: dict[str, int] = {name: code for code, name in enumerate(STATUSES)}
SILENT = tuple(STATUS[name] for name in ("refused", "filtered", "unparsed"))  # answers that say nothing
WHOLE = "\0"  # in front of an id that does not begin with that of its text


class Arm(enum.IntEnum):
    """What a version is for."""

    ORIGINAL = 0
    EDITED = 1
    PLACEBO = 2
    REWORDED = 3  # edited, with neutral edits beside: another wording of the same group


class Codes(Generic[H]):
    """Values to small numbers and back.

    Examples
    --------
    >>> codes = Codes()
    >>> codes.of("a"), codes.of("b"), codes.of("a"), codes.values
    (0, 1, 0, ['a', 'b'])
    """

    def __init__(self) -> None:
        self.values: list[H] = []
        self._known: dict[H, int] = {}

    def of(self, value: H) -> int:
        """The number of ``value``."""
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = len(self.values)
            self.values.append(value)
        return found

    def get(self, value: H) -> int | None:
        """The number of ``value``, or None where it never came."""
        return self._known.get(value)


class Shape(NamedTuple):
    """What the edits of a version come to; one value for all versions that are alike."""

    arm: Arm
    attributes: tuple[str, ...]
    directions: tuple[Direction, ...]  # of edits that change a group
    words_out: tuple[str, ...]
    words_in: tuple[str, ...]
    spans: int
    more_words: int
    more_chars: int
    frames: tuple[str, ...] = ()  # sentences that were put before the text or after it
    carrier: str = "words"  # what states the group: words of the text, or a line in front of it
    kind: str = ""  # of its edits, repairs left out; "wording" where one is, else "mixed" where they differ


class Told(NamedTuple):
    """What an oracle said of a version."""

    outcome: Outcome
    hidden: bool | None
    original_output: str | None
    variant_output: str | None
    reason: str


def kind_of(edits: Iterable[Edit]) -> str:
    """The kind of ``edits``, repairs left out."""
    kinds = {edit.kind for edit in edits} - {"agreement"}
    if "wording" in kinds:
        return "wording"
    return kinds.pop() if len(kinds) == 1 else "mixed" if kinds else ""


def carrier_of(edits: Iterable[Edit]) -> str:
    """What states the group that ``edits`` change: "words" of the text, a "name" or a "statement" in front of it."""
    kinds = {edit.kind for edit in edits}
    return "name" if "name_line" in kinds else "statement" if "statement" in kinds else "words"


def shape_of(edits: Iterable[Edit]) -> Shape:
    """The shape of a version with ``edits``; none make an original.

    Examples
    --------
    >>> edit = Edit(attribute="gender", kind="swap", source_group="male", target_group="female",
    ...             source="He", target="She", where=(0, 2))
    >>> shape_of([edit]).words_in, shape_of([edit]).more_chars, shape_of([]).arm.name
    (('she',), 1, 'ORIGINAL')
    """
    given = list(edits)
    kind = kind_of(given)
    frames = tuple(e.target.strip() for e in given if not e.source and e.kind == "wording")
    changes = [e for e in given if e.kind != "agreement"]
    placebo = {e.kind in NEUTRAL for e in changes}
    arm = (
        Arm.ORIGINAL
        if not placebo
        else Arm.REWORDED
        if len(placebo) == 2
        else Arm.PLACEBO
        if placebo == {True}
        else Arm.EDITED
    )
    real = [e for e in changes if e.kind not in NEUTRAL] or changes
    given, changes = ([e for e in some if e.source or e.kind != "wording"] for some in (given, changes))
    return Shape(
        arm=arm,
        attributes=tuple(sorted({e.attribute for e in real})),
        directions=tuple(sorted({(e.attribute, e.source_group, e.target_group) for e in real})),
        words_out=tuple(sorted({e.source.lower() for e in changes if e.source})),
        words_in=tuple(sorted({e.target.lower() for e in changes if e.target})),
        spans=len(changes),
        more_words=sum(len(e.target.split()) - len(e.source.split()) for e in given),
        more_chars=sum(len(e.target) - len(e.source) for e in given),
        frames=frames,
        carrier=carrier_of(given),
        kind=kind,
    )


class Observations:
    """Versions of texts, the answers to them, and what an oracle said of them.

    Attributes
    ----------
    texts, models, formats, labels, shapes, groups, told : Codes
        What the numbers in the columns stand for; ``groups`` are the (attribute, group) that a version names.
    golds : dict
        Text → the label that the data gives it.
    sources : dict
        Id of a text → what it shares with other texts, such as the résumé of a pair with a post.
    """

    def __init__(self) -> None:
        self.texts: Codes[str] = Codes()
        self.models: Codes[str] = Codes()
        self.formats: Codes[str] = Codes()
        self.labels: Codes[Any] = Codes()
        self.shapes: Codes[Shape] = Codes()
        self.groups: Codes[tuple[tuple[str, str], ...]] = Codes()
        self.told: Codes[Told] = Codes()
        self.golds: dict[int, str] = {}
        self.sources: dict[str, str] = {}
        self._version_text, self._version_shape = array("i"), array("i")
        self._version_name, self._version_groups = array("i"), array("i")
        self._version_parts = array("i")  # as long as the others, or empty
        self._names: Codes[str] = Codes()
        self._parts: Codes[tuple[str, ...]] = Codes()
        self._version, self._model, self._format = array("i"), array("h"), array("h")
        self._replicate, self._status, self._label = array("h"), array("b"), array("i")
        self._score = array("d")
        self._judged_version, self._judged_model, self._judged_format = array("i"), array("h"), array("h")
        self._judged_told, self._distance = array("i"), array("d")

    def __len__(self) -> int:
        return len(self._version)

    def version(self, text: str, edits: Sequence[Edit] = (), name: str = "") -> int:
        """Add a version of ``text``; returns its row."""
        return self.shape(text, shape_of(edits), name)

    def shape(
        self,
        text: str,
        shape: Shape,
        name: str = "",
        groups: tuple[tuple[str, str], ...] = (),
        parts: Iterable[str] | None = None,
    ) -> int:
        """Add a version whose shape is known; ``name`` is its id, ``parts`` those of what it is put together from.

        Parts are given for all versions of a table or for none.
        """
        self._version_text.append(self.texts.of(text))
        self._version_shape.append(self.shapes.of(shape))
        self._version_name.append(self._names.of(_rest(text, name)))
        self._version_groups.append(self.groups.of(groups))
        if parts is not None:
            self._version_parts.append(self._parts.of(tuple(_rest(text, part) for part in parts)))
        return len(self._version_text) - 1

    def units(self) -> Ints:
        """The independent unit of each text: its source, where it shares one with others, else the text itself."""
        if not self.sources:
            return np.arange(len(self.texts.values))
        codes: Codes[tuple[bool, str]] = Codes()
        own = ((name, self.sources.get(name)) for name in self.texts.values)
        named = ((source is not None, name if source is None else source) for name, source in own)
        return np.array([codes.of(one) for one in named], dtype=np.int64)

    def name(self, row: int) -> str:
        """The id of a version; empty where it was added without."""
        return self._whole(row, self._names.values[self._version_name[row]])

    def parts(self, row: int) -> tuple[str, ...]:
        """The ids of the versions that a version is put together from."""
        return tuple(self._whole(row, part) for part in self._parts.values[self._version_parts[row]])

    def _whole(self, row: int, name: str) -> str:
        if name.startswith(WHOLE):
            return name.removeprefix(WHOLE)
        return f"{self.texts.values[self._version_text[row]]}{name}" if name else ""

    def answers(
        self, version: int, *, model: str, format: str, answers: Iterable[Answer], score_of: str | None = None
    ) -> None:
        """Add the answers of one model to one version, one for each replicate.

        A number is its own score, and so is that of a graded answer; of another label the score is the log odds of
        ``score_of``, where the model gave its probability.
        """
        model_code, format_code = self.models.of(model), self.formats.of(format)
        for replicate, answer in enumerate(answers):
            value = answer.value
            score = float("nan")
            if answer.status == "ok":
                if answer.number is not None:
                    score = answer.number
                elif isinstance(value, float | int) and not isinstance(value, bool):
                    score, value = float(value), None
                elif score_of is not None and answer.scores and (p := answer.scores.get(score_of)) is not None:
                    score = log_odds(p)
            self._version.append(version)
            self._model.append(model_code)
            self._format.append(format_code)
            self._replicate.append(min(replicate, 32_767))
            self._status.append(STATUS[answer.status])
            self._label.append(-1 if value is None else self.labels.of(value))
            self._score.append(score)

    def values(self, version: int, model: str, format: str) -> list[Any]:
        """The answers of one model to one version that could be read: labels, or numbers where there are none."""
        columns = self.columns()
        here = (columns.version == version) & (columns.status == STATUS["ok"])
        here &= (columns.model == self.models.get(model)) & (columns.format == self.formats.get(format))
        return [
            self.labels.values[label] if label >= 0 else score
            for label, score in zip(columns.label[here].tolist(), columns.score[here].tolist(), strict=True)
        ]

    def judge(self, version: int, verdict: Verdict) -> None:
        """Add what an oracle said of a version."""
        told = Told(verdict.outcome, verdict.hidden, verdict.original_output, verdict.variant_output, verdict.reason)
        self._judged_version.append(version)
        self._judged_model.append(self.models.of(verdict.model))
        self._judged_format.append(self.formats.of(verdict.format))
        self._judged_told.append(self.told.of(told))
        self._distance.append(float("nan") if verdict.distance is None else verdict.distance)

    def verdicts(self, rows: Iterable[int]) -> Iterator[Verdict]:
        """The verdicts in ``rows`` of the judgements; those of placebos have order 0."""
        for row in rows:
            version, told = self._judged_version[row], self.told.values[self._judged_told[row]]
            shape = self.shapes.values[self._version_shape[version]]
            distance = self._distance[row]
            yield Verdict(
                case_id=self.texts.values[self._version_text[version]],
                variant_id=self.name(version),
                order=0 if shape.arm == Arm.PLACEBO else len(shape.attributes),
                attributes=shape.attributes,
                outcome=told.outcome,
                hidden=told.hidden,
                original_output=told.original_output,
                variant_output=told.variant_output,
                distance=None if distance != distance else distance,
                reason=told.reason,
                model=self.models.values[self._judged_model[row]],
                format=self.formats.values[self._judged_format[row]],
            )

    def of(self, model: str, format: str, *, arm: Arm = Arm.EDITED) -> Iterator[Verdict]:
        """The verdicts of one model in one format."""
        told = self.judged()
        here = np.array([s.arm == arm for s in self.shapes.values], dtype=bool)[told.shape]
        here &= (told.model == self.models.get(model)) & (told.format == self.formats.get(format))
        return self.verdicts(np.flatnonzero(here).tolist())

    def columns(self) -> Columns:
        """Versions and answers as arrays."""
        return Columns(
            version_text=np.array(self._version_text, dtype=np.int64),
            version_shape=np.array(self._version_shape, dtype=np.int64),
            version=np.array(self._version, dtype=np.int64),
            model=np.array(self._model, dtype=np.int64),
            format=np.array(self._format, dtype=np.int64),
            status=np.array(self._status, dtype=np.int64),
            label=np.array(self._label, dtype=np.int64),
            score=np.array(self._score),
        )

    def version_groups(self) -> Ints:
        """The code in ``groups`` of each version."""
        return np.array(self._version_groups, dtype=np.int64)

    def judged(self) -> Judged:
        """What an oracle said, as arrays."""
        version = np.array(self._judged_version, dtype=np.int64)
        told = np.array(self._judged_told, dtype=np.int64)
        outcome = np.array([OUTCOMES[t.outcome] for t in self.told.values], dtype=np.int8)
        hidden = np.array([-1 if t.hidden is None else t.hidden for t in self.told.values], dtype=np.int8)
        return Judged(
            version=version,
            text=np.array(self._version_text, dtype=np.int64)[version],
            shape=np.array(self._version_shape, dtype=np.int64)[version],
            model=np.array(self._judged_model, dtype=np.int64),
            format=np.array(self._judged_format, dtype=np.int64),
            outcome=outcome[told],
            hidden=hidden[told],
            distance=np.array(self._distance),
        )


def _rest(text: str, name: str) -> str:
    """What of an id is kept beside that of its text: the same for many."""
    known = name.startswith(text) and name != text
    return name[len(text) :] if known else WHOLE + name if name else ""


class Columns(NamedTuple):
    """`Observations` as arrays: two for versions, the others for answers."""

    version_text: NDArray[np.int64]
    version_shape: NDArray[np.int64]
    version: NDArray[np.int64]
    model: NDArray[np.int64]
    format: NDArray[np.int64]
    status: NDArray[np.int64]
    label: NDArray[np.int64]
    score: NDArray[np.float64]


class Judged(NamedTuple):
    """What an oracle said, as arrays: one entry for each version, model and format.

    ``outcome`` has the codes of `OUTCOMES`; ``hidden`` is −1 where nothing can be said.
    """

    version: Ints
    text: Ints
    shape: Ints
    model: Ints
    format: Ints
    outcome: NDArray[np.int8]
    hidden: NDArray[np.int8]
    distance: NDArray[np.float64]


def log_odds(p: float) -> float:
    """Log odds, kept within those of one in a million.

    Examples
    --------
    >>> round(log_odds(0.75), 3), round(log_odds(1.0), 1)
    (1.099, 13.8)
    """
    q = min(max(float(p), 1e-6), 1 - 1e-6)
    return float(np.log(q / (1 - q)))


def attributes_of(observations: Observations) -> list[str]:
    """Attributes that are edited alone, sorted."""
    return sorted({s.attributes[0] for s in observations.shapes.values if len(s.attributes) == 1 and s.arm})
