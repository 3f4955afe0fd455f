"""The one place where tabular search asks the model: rows × protected combinations, in batches."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import AuditError, BudgetExceeded, ConfigError, ModelFailed, PluginError
from auditor.core.record.rows import Raw
from auditor.core.shown import plural
from auditor.tables.columns import Codes, Mask
from auditor.tables.row_schema import Asked, Schema, row_keys

Labels = NDArray[np.int64]
Varied = tuple[NDArray[np.intp], Codes]  # columns by position, and combinations of their values
RESOLUTION = 1e-9  # numbers are kept as whole multiples of it


@dataclass(frozen=True, slots=True)
class Distance:
    """Labels differ if they are not equal; numbers if they are more than ``threshold`` apart."""

    threshold: float | None = None  # None: outputs are labels

    @property
    def numeric(self) -> bool:
        """Whether outputs are numbers."""
        return self.threshold is not None

    @property
    def limit(self) -> int:
        """The largest difference of two codes that counts as equal: whole, so free of rounding."""
        return round((self.threshold or 0.0) / RESOLUTION)

    def codes(self, answers: NDArray[np.generic]) -> Labels:
        """Return numbers as whole multiples of 1e-9."""
        try:
            numbers = answers.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ConfigError("--distance-threshold needs a model that returns numbers") from error
        if not np.isfinite(numbers).all() or (np.abs(numbers) > 1e9).any():
            raise PluginError("the model returned NaN, an infinite number, or one beyond 1e9")
        return np.rint(numbers / RESOLUTION).astype(np.int64)

    def differ(self, labels: Labels, possible: Mask | None) -> Mask:
        """Return which rows of labels, shape (n, m), hold two that differ; cells that are not possible are left out."""
        if not self.limit and (possible is None or possible.all()):
            return np.asarray((labels[:, 1:] != labels[:, :1]).any(axis=1))
        low, high = _ends(labels, possible)
        return np.asarray(high - low > self.limit)

    def each(self, labels: Labels, possible: Mask | None) -> Mask:
        """Return which cells differ from some other cell of their row, shape (n, m)."""
        if not self.limit or not labels.size:
            cells = np.broadcast_to(self.differ(labels, possible)[:, None], labels.shape)
        else:
            low, high = (end[:, None] for end in _ends(labels, possible))
            cells = (labels - low > self.limit) | (high - labels > self.limit)
        return np.asarray(cells if possible is None else cells & possible)


def _ends(labels: Labels, possible: Mask | None) -> tuple[Labels, Labels]:
    """The smallest and the largest possible label of each row; equal where none is possible."""
    if possible is None or possible.all():
        return labels.min(axis=1), labels.max(axis=1)
    limits = np.iinfo(np.int64)
    low = np.where(possible, labels, limits.max).min(axis=1)
    high = np.where(possible, labels, limits.min).max(axis=1)
    return np.where(possible.any(axis=1), low, high), high


LABELS = Distance()


NOT_JUDGED = int(np.iinfo(np.int64).min)  # where the model gave no label; equal to no label


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """What the model says about a batch of n cases with m combinations of protected values each."""

    labels: Labels  # (n, m); `NOT_JUDGED` without a label
    possible: Mask  # (n, m): which of these rows a person could have
    discriminatory: Mask  # (n,): two possible rows of the case get different labels
    off_manifold: Mask  # (n,): labels differ only if rows that no person could have are counted

    @property
    def undecided(self) -> Mask:
        """Cases without a difference for which some row got no label, shape (n,): neither yes nor no."""
        return np.asarray((self.labels == NOT_JUDGED).any(axis=1) & ~self.discriminatory)


class Evaluator:
    """Asks a model about rows of a schema: ``predict(X) -> labels``, X as `Schema.decode` gives it, ``batch`` at once.

    Integers and booleans are their own code, text gets a code in order of appearance, None becomes `NOT_JUDGED`. A call
    beyond a limit, in rows or in seconds since this was made, raises `BudgetExceeded` before asking. ``cache``: the
    model is slow; ``keep``: answers are remembered although it is quick. ``left`` is what a model with a budget of its
    own allows.
    """

    def __init__(
        self,
        predict: Callable[[Asked], object],
        schema: Schema,
        *,
        cache: bool | None = None,
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        batch: int = 65536,
        frame: bool = False,
        distance: Distance = LABELS,
        left: Callable[[], int | None] | None = None,
        keep: bool = False,
        watch: Callable[[int], None] = lambda rows: None,
    ) -> None:
        self._predict, self.schema, self.batch = predict, schema, batch
        self._frame, self.distance = frame, distance
        self._max, self._max_seconds = max_evaluations, max_seconds
        self._left, self._watch = left or (lambda: None), watch
        self._cache: dict[object, int] | None = {} if cache or keep else None
        self.slow = bool(cache)  # what is asked costs, so nothing is asked that is not needed
        self._began = time.monotonic()
        self._names: dict[str, int] = {}
        self.evaluations = 0  # rows passed to ``predict``
        self.cache_hits = 0
        self.not_judged = 0  # rows passed to it that got no label

    @property
    def seconds(self) -> float:
        """Wall time since the evaluator was made."""
        return time.monotonic() - self._began

    def spent(self) -> dict[str, float]:
        """What was asked, for the counts of a result."""
        return {"evaluations": self.evaluations, "cache_hits": self.cache_hits}

    @property
    def remaining(self) -> int | None:
        """Rows that may still be asked; None without a limit, 0 when the time is up."""
        if self._max_seconds is not None and self.seconds >= self._max_seconds:
            return 0
        own = None if self._max is None else max(0, self._max - self.evaluations)
        limits = [value for value in (own, self._left()) if value is not None]
        return min(limits) if limits else None

    def affordable(self, cases: int) -> int:
        """How many of ``cases`` may still be judged with all combinations."""
        left = self.remaining
        return cases if left is None else min(cases, left // len(self.schema.combos))

    def label_name(self, label: int) -> str:
        """How a label code is written in reports."""
        if label == NOT_JUDGED:
            return "not judged"
        if self.distance.numeric:
            return f"{label * RESOLUTION:g}"
        return next((name for name, code in self._names.items() if code == label), str(int(label)))

    def label_code(self, value: Raw) -> int:
        """The code of a label, e.g. the favourable one; `NOT_JUDGED` where the model's labels can be no such label."""
        if self._names or not (_whole(value) or self.evaluations):
            return self._first(str(value))
        return int(float(value)) if _whole(value) else NOT_JUDGED  # the model's labels are numbers

    def labels(self, codes: Codes) -> Labels:
        """Labels of rows, shape (n,)."""
        result = np.empty(len(codes), dtype=np.int64)
        for start in range(0, len(codes), self.batch):
            part = codes[start : start + self.batch]
            result[start : start + self.batch] = self._cached(part) if self._cache is not None else self._ask(part)
        return result

    def grid(self, codes: Codes, varied: Varied | None = None) -> Labels:
        """Return labels of each row with all combinations of some columns (default: the protected ones), (n, m)."""
        index, combos = varied or (self.schema.protected_index, self.schema.combos)
        m, n = len(combos), len(codes)
        result = np.empty((m, n), dtype=np.int64)
        step = max(1, self.batch // m)
        for start in range(0, n, step):
            part = codes[start : start + step]
            result[:, start : start + len(part)] = self.labels(self.schema.crossed(part, index, combos)).reshape(m, -1)
        return result.T

    def possible(self, codes: Codes, varied: Varied | None = None) -> Mask:
        """Which combinations of some columns' values go with the rest of a row, shape (n, m); as `grid`."""
        index, combos = varied or (self.schema.protected_index, self.schema.combos)
        if not self.schema.constraints:
            return np.ones((len(codes), len(combos)), dtype=bool)
        rows = self.schema.crossed(codes, index, combos)
        return self.schema.on_manifold(rows).reshape(len(combos), len(codes)).T

    def judge(self, codes: Codes) -> Judged:
        """Return labels and verdicts of cases."""
        return self._judged(self.grid(codes), codes)

    def _judged(self, labels: Labels, codes: Codes) -> Judged:
        possible, everywhere = self.possible(codes), self.differ(labels)
        if self.not_judged or self._cache is not None:
            possible = possible & (labels != NOT_JUDGED)
        real = self.differ(labels, possible) if self.schema.constraints else everywhere
        return Judged(labels=labels, possible=possible, discriminatory=real, off_manifold=everywhere & ~real)

    def recall(self, codes: Codes) -> Judged:
        """As `judge` without asking, but of a quick model whose answers are not kept; unknown rows are `NOT_JUDGED`."""
        if self._cache is None:
            seconds, self._max_seconds = self._max_seconds, None
            try:
                return self.judge(codes)
            finally:
                self._max_seconds = seconds
        rows = self.schema.crossed(codes, self.schema.protected_index, self.schema.combos)
        keys = row_keys(rows, self.schema.sizes)
        labels = np.array([self._cache.get(k, NOT_JUDGED) for k in keys.tolist()], dtype=np.int64)
        return self._judged(labels.reshape(len(self.schema.combos), len(codes)).T, codes)

    def differ(self, labels: Labels, possible: Mask | None = None) -> Mask:
        """Return which rows of a grid hold two labels that differ; impossible and unknown cells are left out."""
        return self.distance.differ(labels, self._known(labels, possible))

    def each(self, labels: Labels, possible: Mask | None = None) -> Mask:
        """Which cells of a grid differ from some other cell of their row, shape (n, m); see `Distance.each`."""
        return self.distance.each(labels, self._known(labels, possible))

    def _known(self, labels: Labels, possible: Mask | None) -> Mask | None:
        if not self.not_judged and self._cache is None:  # then every row has a label
            return possible
        known = np.asarray(labels != NOT_JUDGED)
        return known if possible is None else np.asarray(known & possible)

    def _cached(self, codes: Codes) -> Labels:
        keys, cache = row_keys(codes, self.schema.sizes), self._cache
        assert cache is not None
        plain = keys.tolist()
        distinct, first = np.unique(keys, return_index=True)
        unknown = np.sort(first[[k not in cache for k in distinct.tolist()]])
        if len(unknown):
            for at, label in zip(unknown, self._ask(codes[unknown]), strict=True):
                cache[plain[at]] = int(label)
        self.cache_hits += len(codes) - len(unknown)
        return np.array([cache[k] for k in plain], dtype=np.int64)

    def _ask(self, codes: Codes) -> Labels:
        n = len(codes)
        if not n:
            return np.empty(0, dtype=np.int64)
        if self._max is not None and self.evaluations + n > self._max:
            raise BudgetExceeded(f"the limit of {self._max:,} model evaluations was reached")
        if self._max_seconds is not None and self.seconds >= self._max_seconds:
            raise BudgetExceeded(f"the limit of {self._max_seconds:g} s was reached")
        rows = self.schema.frame(codes) if self._frame else self.schema.decode(codes)
        try:
            answers = np.asarray(self._predict(rows))
        except AuditError:
            raise
        except Exception as error:  # the user's own code may raise anything
            raise ModelFailed(what_failed(error, self.schema, rows, n)) from error
        self.evaluations += n
        self._watch(self.evaluations)
        if answers.shape == (n, 1):
            answers = answers[:, 0]
        if answers.shape != (n,):
            raise PluginError(
                f"the model returned shape {answers.shape} for {n} rows; expected ({n},): one label a row"
            )
        return self._to_codes(answers)

    def _to_codes(self, answers: NDArray[np.generic]) -> Labels:
        if answers.dtype == object and (lacking := np.array([a is None for a in answers])).any():
            codes = np.full(len(answers), NOT_JUDGED, dtype=np.int64)
            if not lacking.all():
                codes[~lacking] = self._to_codes(np.array(answers[~lacking].tolist()))
            self.not_judged += int(lacking.sum())
            return codes
        if self.distance.numeric:
            return self.distance.codes(answers)
        if answers.dtype.kind in "iub" and not self._names:
            return answers.astype(np.int64)
        if answers.dtype.kind == "f" and not self._names:
            if not np.isfinite(answers).all():
                raise PluginError("the model returned NaN or an infinite number for a row")
            whole = answers.astype(np.int64)
            if (whole == answers).all():
                return whole
            raise ConfigError(
                "the model returns numbers that are not whole, so equality says little: "
                "give --distance-threshold NUMBER: outputs more than that apart differ"
            )
        distinct, inverse = np.unique(answers.astype(str), return_inverse=True)
        codes = np.array([self._first(str(name)) for name in distinct])
        return codes[inverse.reshape(-1)].astype(np.int64)

    def _first(self, name: str) -> int:
        return self._names.setdefault(name, -1 - len(self._names))


def _whole(value: Raw) -> bool:
    try:
        return float(value).is_integer()
    except ValueError:
        return False


def what_failed(error: Exception, schema: Schema, rows: object, n: int) -> str:
    """Which error a model raised, where in its code, and for which row it was asked first."""
    table = np.asarray(rows, dtype=object)
    first = ", ".join(f"{name}={_told(v)}" for name, v in zip(schema.names, table[0], strict=True))
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    text = f"the model raised {type(error).__name__}: {' '.join(str(error).split())[:400] or 'no message'}{at}, "
    text += f"asked about {plural(n, 'row')}; the first: {first}"
    lacking = [
        name
        for j, name in enumerate(schema.names)
        if any(isinstance(v, float) and np.isnan(v) for v in table[:, j].tolist())
    ]
    if lacking:
        text += (
            f". Values are missing (NaN) in {', '.join(lacking)}: if the model does not take them, remove or fill "
            "those rows, and take .nan from the schema"
        )
    elif isinstance(error, ValueError | TypeError | LookupError):
        text += ". Are these the columns that it was trained on?"
    return text


def _told(value: object) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "…"
