"""The table of observations: one row for each answer, and everything that statistics need to know of it.

Versions of a text (the original, edited ones, placebos) have a row of their own in a second table, which the
answers point to, and so does what an oracle said of a version. All are columns of numbers: a run appends to them,
`audit import` fills them from a file, and rates and claims are group-bys on them.
"""

from __future__ import annotations

import enum
import itertools
import re
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Generic, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from auditor.core.types import NEUTRAL, Answer, AnswerStatus, Edit, Outcome, Verdict

Direction = tuple[str, str, str]  # attribute, source group, target group
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
H = TypeVar("H", bound=Hashable)
OUTCOMES: dict[str, int] = {name: code for code, name in enumerate(get_args(Outcome))}
STATUSES: tuple[AnswerStatus, ...] = get_args(AnswerStatus)
STATUS: dict[str, int] = {name: code for code, name in enumerate(STATUSES)}
SILENT = tuple(STATUS[name] for name in ("refused", "filtered", "unparsed"))  # answers that say nothing
TOKEN = re.compile(r"\w+|[^\w\s]")  # a word as a reader of the text splits it, not as a dictionary lists it
# What of a verdict stands in columns.
ELSEWHERE: dict[str, Any] = dict.fromkeys(("case_id", "variant_id", "model", "format"), "")
ELSEWHERE |= {"order": 0, "attributes": (), "distance": None}
WHOLE = "\0"  # in front of an id that does not begin with that of its text


class Arm(enum.IntEnum):
    """What a version is for."""

    ORIGINAL = 0
    EDITED = 1
    PLACEBO = 2
    REWORDED = 3  # edited, with neutral edits beside: another wording of the same group


class Codes(Generic[H]):
    """Values to small numbers and back.

    >>> codes = Codes()
    >>> codes.of("a"), codes.of("b"), codes.of("a"), codes.values
    (0, 1, 0, ['a', 'b'])
    """

    def __init__(self) -> None:
        self.values: list[H] = []
        self._known: dict[H, int] = {}

    def of(self, value: H) -> int:
        """The number of ``value``."""
        code = self._known.get(value)
        if code is None:
            code = self._known[value] = len(self.values)
            self.values.append(value)
        return code

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
    tokens: tuple[tuple[str, int], ...] = ()  # how many more of each it has than the original; none: as the words say


class Place(NamedTuple):
    """Whose answers: a model in one format."""

    model: str
    format: str


def carrier_of(edits: Iterable[Edit]) -> str:
    """What states the group that ``edits`` change: "words" of the text, a "name" or a "statement" in front of it."""
    kinds = {edit.kind for edit in edits}
    return "name" if "name_line" in kinds else "statement" if "statement" in kinds else "words"


def shape_of(edits: Iterable[Edit]) -> Shape:
    """The shape of a version with ``edits``; none make an original."""
    edits = list(edits)
    changes = [e for e in edits if e.kind != "agreement"]
    real = [e for e in changes if e.kind not in NEUTRAL]
    arm = Arm.ORIGINAL if not changes else Arm.PLACEBO if not real else Arm.EDITED
    if real and len(real) < len(changes):
        arm = Arm.REWORDED
    # A sentence before or after a text is a frame, and counts as no words.
    within, worded = ([e for e in some if e.source or e.kind != "wording"] for some in (edits, changes))
    real, kinds = real or changes, {e.kind for e in changes}
    return Shape(
        arm=arm,
        attributes=tuple(sorted({e.attribute for e in real})),
        directions=tuple(sorted({(e.attribute, e.source_group, e.target_group) for e in real})),
        words_out=tuple(sorted({e.source.lower() for e in worded if e.source})),
        words_in=tuple(sorted({e.target.lower() for e in worded if e.target})),
        spans=len(worded),
        more_words=sum(len(e.target.split()) - len(e.source.split()) for e in within),
        more_chars=sum(len(e.target) - len(e.source) for e in within),
        frames=tuple(e.target.strip() for e in edits if not e.source and e.kind == "wording"),
        carrier=carrier_of(within),
        kind="wording" if "wording" in kinds else "mixed" if len(kinds) > 1 else "".join(kinds),
        tokens=token_moves((e.source for e in within), (e.target for e in within)),
    )


def token_moves(out: Iterable[str], put: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return how many more of each token there are, repairs included."""
    more = Counter(token for term in put for token in TOKEN.findall(term.lower()))
    more.subtract(token for term in out for token in TOKEN.findall(term.lower()))
    return tuple(sorted((token, many) for token, many in more.items() if many))


def place_of(edits: Iterable[Edit], text: object) -> int:
    """Return how much of ``text``, the original, comes before the first edit, in thousandths; 0 where it is no text.

    >>> edit = Edit(attribute="gender", kind="swap", source_group="male", target_group="female",
    ...             source="he", target="she", where=(5, 7))
    >>> place_of([edit], "Then he left."), place_of([], "Then he left.")
    (385, 0)
    """
    starts = [edit.where[0] for edit in edits if isinstance(edit.where, tuple)]
    return round(1000 * min(starts) / len(text)) if starts and isinstance(text, str) and text else 0


class Growing:
    """Columns of whole numbers that rows are added to."""

    def __init__(self, codes: str) -> None:
        self.columns = [array(code) for code in codes]

    def add(self, *row: int) -> int:
        """Returns the number of the row."""
        for column, value in zip(self.columns, row, strict=True):
            column.append(value)
        return len(self.columns[0]) - 1

    def arrays(self) -> list[Ints]:
        """The columns."""
        return [np.array(column, dtype=np.int64) for column in self.columns]


class Observations:
    """Versions of texts, the answers to them, and what an oracle said of them.

    The `Codes` say what the numbers in the columns stand for.
    """

    def __init__(self) -> None:
        self.texts: Codes[str] = Codes()
        self.models: Codes[str] = Codes()
        self.formats: Codes[str] = Codes()
        self.labels: Codes[Any] = Codes()
        self.shapes: Codes[Shape] = Codes()
        self.groups: Codes[tuple[tuple[str, str], ...]] = Codes()  # the (attribute, group) that a version names
        self.golds: dict[int, str] = {}  # text → the label that the data gives it
        # Id of a text → what it shares with other texts, such as the résumé of a pair with a post.
        self.sources: dict[str, str] = {}
        self._names: Codes[str] = Codes()
        self._parts: Codes[tuple[str, ...]] = Codes()
        self._judgements: Codes[Verdict] = Codes()  # what is the same in many
        self._versions = Growing("iiiiih")  # text, shape, name, groups, parts, place
        self._answers = Growing("ihhbi")  # version, model, format, status, label
        self._scores = array("d")
        self._judged = Growing("ihhi")  # version, model, format, judgement
        self._distances = array("d")

    def __len__(self) -> int:
        return len(self._scores)

    def version(self, text: str, edits: Sequence[Edit] = (), name: str = "", original: object = "") -> int:
        """Add a version of ``text``; returns its row. ``original`` is the text before the edits."""
        return self.shape(text, shape_of(edits), name, place=place_of(edits, original))

    def shape(
        self,
        text: str,
        shape: Shape,
        name: str = "",
        groups: tuple[tuple[str, str], ...] = (),
        parts: Iterable[str] = (),
        place: int = 0,
    ) -> int:
        """Add a version of known shape; returns its row.

        ``name`` is its id, ``parts`` are the ids of the versions that it joins, ``place`` is what `place_of` gives.
        """
        return self._versions.add(
            self.texts.of(text),
            self.shapes.of(shape),
            self._names.of(_rest(text, name)),
            self.groups.of(groups),
            self._parts.of(tuple(_rest(text, part) for part in parts)),
            place,
        )

    def bare(self, rows: Iterable[int] | None = None) -> Observations:
        """A table of its versions, or of those in ``rows``, without answers."""
        out = Observations()
        out.sources = self.sources
        text, shape, *_, place = self._versions.columns
        for row in range(len(text)) if rows is None else rows:
            out.shape(self.texts.values[text[row]], self.shapes.values[shape[row]], self.name(row), place=place[row])
        return out

    @property
    def versions(self) -> int:
        """How many versions there are."""
        return len(self._versions.columns[0])

    def units(self) -> Ints:
        """The independent unit of each text: its source, where it shares one with others, else the text itself."""
        if not self.sources:
            return np.arange(len(self.texts.values))
        codes: Codes[tuple[bool, str]] = Codes()
        named = ((name in self.sources, self.sources.get(name, name)) for name in self.texts.values)
        return np.array([codes.of(one) for one in named], dtype=np.int64)

    def name(self, row: int) -> str:
        """The id of a version; empty where it was added without."""
        return self._whole(row, self._names.values[self._versions.columns[2][row]])

    def version_of(self, row: int) -> tuple[str, Shape]:
        """The text of a version, and its shape."""
        text, shape, *_ = (column[row] for column in self._versions.columns)
        return self.texts.values[text], self.shapes.values[shape]

    def parts(self, row: int) -> tuple[str, ...]:
        """The ids of the versions that a version is put together from."""
        return tuple(self._whole(row, part) for part in self._parts.values[self._versions.columns[4][row]])

    def _whole(self, row: int, name: str) -> str:
        if name.startswith(WHOLE):
            return name.removeprefix(WHOLE)
        return f"{self.texts.values[self._versions.columns[0][row]]}{name}" if name else ""

    def answers(
        self, version: int, *, model: str, format: str, answers: Iterable[Answer], score_of: str | None = None
    ) -> None:
        """Add the answers of one model to one version, one for each replicate.

        A number is its own score, and so is that of a graded answer; of another label the score is the log odds of
        ``score_of``, where the model gave its probability.
        """
        place = self.models.of(model), self.formats.of(format)
        for answer in answers:
            value = answer.value if _number(answer) is None else None
            label = -1 if value is None else self.labels.of(value)
            self._answers.add(version, *place, STATUS[answer.status], label)
            self._scores.append(score_in(answer, score_of))

    def take(self, other: Observations, *, model: str, format: str) -> None:
        """Add all answers of ``other``, whose versions are the first ones here, as those of one model in one format."""
        place = self.models.of(model), self.formats.of(format)
        assert all(self.name(row) == other.name(row) for row in range(other.versions))
        version, _, _, status, label = other._answers.columns
        for row, code in enumerate(label):
            own = self.labels.of(other.labels.values[code]) if code >= 0 else -1
            self._answers.add(version[row], *place, status[row], own)
        self._scores.extend(other._scores)

    def judge(self, version: int, verdict: Verdict) -> None:
        """Add what an oracle said of a version."""
        place = self.models.of(verdict.model), self.formats.of(verdict.format)
        self._judged.add(version, *place, self._judgements.of(replace(verdict, **ELSEWHERE)))
        self._distances.append(float("nan") if verdict.distance is None else verdict.distance)

    def verdicts(self, rows: Iterable[int]) -> Iterator[Verdict]:
        """The verdicts in ``rows`` of the judgements; those of placebos have order 0."""
        versions, models, formats, judgements = self._judged.columns
        for row in rows:
            version, distance = versions[row], self._distances[row]
            text, shape = self.version_of(version)
            yield replace(
                self._judgements.values[judgements[row]],
                case_id=text,
                variant_id=self.name(version),
                order=0 if shape.arm == Arm.PLACEBO else len(shape.attributes),
                attributes=shape.attributes,
                distance=None if distance != distance else distance,
                model=self.models.values[models[row]],
                format=self.formats.values[formats[row]],
            )

    def of(self, model: str, format: str, *, arm: Arm = Arm.EDITED) -> Iterator[Verdict]:
        """The verdicts of one model in one format."""
        judged = self.judged()
        here = self.in_arm(arm)[judged.shape] & self.at(judged, Place(model, format))
        return self.verdicts(np.flatnonzero(here).tolist())

    def in_arm(self, *arms: Arm) -> Bools:
        """Which of the shapes are of one of ``arms``."""
        return np.array([shape.arm in arms for shape in self.shapes.values], dtype=bool)

    def at(self, rows: Columns | Judged, place: Place) -> Bools:
        """Which answers, or judgements, are of one model in one format."""
        own = (rows.model == self.models.get(place.model)) & (rows.format == self.formats.get(place.format))
        return np.asarray(own, dtype=bool)

    def places(self, columns: Columns) -> Iterator[tuple[Place, Bools]]:
        """Each model in each format, with its answers; those without any are left out."""
        for model, format in itertools.product(self.models.values, self.formats.values):
            place = Place(model, format)
            if (rows := self.at(columns, place)).any():
                yield place, rows

    def columns(self) -> Columns:
        """Versions and answers as arrays."""
        text, shape, *_, place = self._versions.arrays()
        version, model, format, status, label = self._answers.arrays()
        return Columns(text, shape, place, version, model, format, status, label, np.array(self._scores))

    def version_groups(self) -> Ints:
        """The code in ``groups`` of each version."""
        return np.array(self._versions.columns[3], dtype=np.int64)

    def judged(self) -> Judged:
        """What an oracle said, as arrays."""
        version, model, format, said = self._judged.arrays()
        text, shape, *_ = self._versions.arrays()
        outcome = np.array([OUTCOMES[one.outcome] for one in self._judgements.values], dtype=np.int8)
        hidden = np.array([-1 if one.hidden is None else one.hidden for one in self._judgements.values], dtype=np.int8)
        place = text[version], shape[version], model, format
        return Judged(version, *place, outcome[said], hidden[said], np.array(self._distances))


def _rest(text: str, name: str) -> str:
    """What of an id is kept beside that of its text: the same for many."""
    known = name.startswith(text) and name != text
    return name[len(text) :] if known else WHOLE + name if name else ""


class Columns(NamedTuple):
    """`Observations` as arrays: three for versions, the others for answers."""

    version_text: Ints
    version_shape: Ints
    version_place: Ints
    version: Ints
    model: Ints
    format: Ints
    status: Ints
    label: Ints
    score: Floats


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
    distance: Floats


def score_in(answer: Answer, score_of: str | None) -> float:
    """Return the score of an answer, as `Observations.answers` has it; NaN where it has none."""
    number = answer.number if answer.number is not None else _number(answer)
    if number is None and answer.status == "ok" and score_of is not None and answer.scores:
        p = answer.scores.get(score_of)
        number = None if p is None else log_odds(p)
    return float("nan") if number is None or answer.status != "ok" else number


def _number(answer: Answer) -> float | None:
    """Return the number that an answer is; None of a label, with a number or without."""
    if answer.number is not None or isinstance(answer.value, bool) or not isinstance(answer.value, float | int):
        return None
    return float(answer.value)


def log_odds(p: float) -> float:
    """Log odds, kept within those of one in a million."""
    q = min(max(float(p), 1e-6), 1 - 1e-6)
    return float(np.log(q / (1 - q)))


def attributes_of(observations: Observations) -> list[str]:
    """Attributes that are edited alone, sorted."""
    return sorted({s.attributes[0] for s in observations.shapes.values if len(s.attributes) == 1 and s.arm})
