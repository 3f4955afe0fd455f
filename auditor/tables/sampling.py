"""Themis: group, causal and apparent discrimination scores of sets of columns (Algorithms 1–3).

S. Galhotra, Y. Brun, A. Meliou, *Fairness Testing: Testing Software for Discrimination*, ESEC/FSE 2017.

The default protocol draws rows uniformly, judges every combination of the columns for all of them at once,
and stops on an interval that is valid whenever one stops. ``protocol="themis"`` follows the paper's
algorithms row by row with its Wald rule (`auditor.tables.wald`), to lay figures side by side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from auditor.core.counting import plural
from auditor.core.errors import BudgetExceeded, ConfigError
from auditor.measure.confidence_sequences import METHOD, confidence_sequence
from auditor.measure.intervals import clopper_pearson
from auditor.tables.core import lattice, minimal_pairs
from auditor.tables.evaluate import Evaluator, Judged, enumerate_rows, uniform
from auditor.tables.given import Given, Rows
from auditor.tables.profile import Profile
from auditor.tables.result import Pair, Score, Subset, TabularResult
from auditor.tables.schema import ENUMERABLE, Codes, Schema
from auditor.tables.tally import KEEP_JUDGED, Tally

Sampler = Callable[[int], Rows]
EXACT_METHOD = "enumeration of the whole domain"
GIVEN_METHOD = "clopper-pearson, own rows"
PAIRS = 20  # exemplars
LARGEST_BATCH = 1 << 20  # rows passed to the model between two looks


@dataclass(frozen=True, kw_only=True, slots=True)
class ThemisOptions:
    """What shapes a Themis run.

    Parameters
    ----------
    mode : {"score", "search"}
        Scores of the protected columns together, or all minimal sets above ``theta`` (Algorithm 3).
    protocol : {"default", "themis"}
        ``themis``: the paper's one-by-one sampling and stopping rule.
    confidence : float
        Level of intervals, in (0, 1); the paper's experiments use 0.99.
    epsilon : float
        Half-width at which sampling stops; the paper's experiments use 0.05.
    theta : float
        Threshold of the search; the paper's experiments use 0.75.
    max_samples : int
        Rows drawn at most, per score (per group under ``protocol="themis"``). The released code has 10,000.
    min_samples : int, optional
        Rows drawn before stopping is considered: 10 under ``protocol="themis"`` (released code), else 1,000.
    columns : tuple of str, optional
        Columns whose subsets are searched; default: the protected ones.
    measure : {"causal", "group"}
        Which score the search is about.
    prune : bool
        Whether the search uses Theorems 4.1–4.3.
    max_combos : int
        Combinations of a set tried per row at most; beyond it a causal score is a lower bound.
    enumerate : bool, optional
        Walk through the whole domain; default: if it has at most 10 million rows and the model is not slow.
    data : Given, or array of int32, shape (n, d), optional
        Given rows for apparent scores.
    profile : Profile, optional
        Distribution of rows instead of the uniform one.
    """

    mode: Literal["score", "search"] = "score"
    protocol: Literal["default", "themis"] = "default"
    confidence: float = 0.99
    epsilon: float = 0.05
    theta: float = 0.75
    max_samples: int = 10_000
    min_samples: int | None = None
    columns: tuple[str, ...] | None = None
    measure: Literal["causal", "group"] = "causal"
    prune: bool = True
    max_combos: int = 4096
    enumerate: bool | None = None
    data: Rows | None = None
    profile: Profile | None = None

    def __post_init__(self) -> None:
        for name, low, high in (("confidence", 0.0, 1.0), ("epsilon", 0.0, 1.0)):
            if not low < getattr(self, name) < high:
                raise ConfigError(
                    f"--{name} must lie between {low:g} and {high:g}; got {getattr(self, name)}"
                )
        if not 0 <= self.theta <= 1:
            raise ConfigError(f"--theta must lie in [0, 1]; got {self.theta}")
        if self.max_samples < 1 or self.max_combos < 2 or (self.min_samples or 0) < 0:
            raise ConfigError(
                "--max-samples must be at least 1, --max-combos at least 2, --min-samples at least 0"
            )
        for name, known in (
            ("mode", ("score", "search")),
            ("protocol", ("default", "themis")),
            ("measure", ("causal", "group")),
        ):
            if getattr(self, name) not in known:
                raise ConfigError(
                    f"--{name} of themis must be {' or '.join(known)}; got {getattr(self, name)!r}"
                )

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> ThemisOptions:
        """From plain options; None means the default, an unknown name is a `ConfigError`."""
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(set(options) - known):
            raise ConfigError(f"themis has no option {unknown[0]!r}; options: {', '.join(sorted(known))}")
        return cls(**{key: value for key, value in options.items() if value is not None})

    @property
    def least(self) -> int:
        """Rows drawn before stopping is considered."""
        if self.min_samples is not None:
            return self.min_samples
        return 10 if self.protocol == "themis" else 1_000

    def plain(self) -> dict[str, Any]:
        """The options for the record: arrays and profiles by size and name."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        values["data"] = None if self.data is None else plural(len(self.data), "row")
        values["profile"] = None if self.profile is None else self.profile.name
        return values | {"min_samples": self.least}


def run(
    evaluator: Evaluator, schema: Schema, options: Mapping[str, Any], rng: np.random.Generator
) -> TabularResult:
    """Measure discrimination scores, or search minimal discriminating sets.

    Parameters
    ----------
    evaluator : Evaluator
        Asks the model.
    schema : Schema
        With at least one protected column, unless ``columns`` names what is searched.
    options : mapping
        See `ThemisOptions`.
    rng : numpy.random.Generator
        Where all randomness comes from.

    Returns
    -------
    TabularResult
        ``counts["generated"]`` are rows drawn: duplicates are kept, because rates need them.
    """
    settings = ThemisOptions.read(options)
    if settings.mode == "search":
        from auditor.tables.search import search

        return search(evaluator, schema, settings, rng)
    if not len(schema.protected_index):
        raise ConfigError("no protected column: give --protected NAME[,NAME]")
    if settings.protocol == "themis":
        from auditor.tables.wald import literal_scores

        return literal_scores(evaluator, schema, settings, rng)
    return _scores(evaluator, schema, settings, rng)


def _scores(
    evaluator: Evaluator, schema: Schema, settings: ThemisOptions, rng: np.random.Generator
) -> TabularResult:
    exact = walks(evaluator, schema, settings)
    tally = Tally(schema, evaluator, schema.protected_index, keep=0 if exact else KEEP_JUDGED)
    reason = ""
    try:
        if exact:
            for rows in enumerate_rows(schema, schema.free_index):
                tally.add(rows, weigh="cells")
        else:
            reason = sample(tally, sampler(schema, settings, rng), settings)
    except BudgetExceeded as error:
        reason = str(error)
    scores: tuple[Score, ...] = ()
    population = "profile" if settings.profile is not None else "domain (uniform)"
    prefix = "apparent_" if settings.profile is not None else ""
    if exact and not reason:
        scores = tally.scores("domain (all rows)", settings.confidence, None, EXACT_METHOD)
    elif tally.rows and not exact:
        scores = tally.scores(population, settings.confidence, confidence_sequence, METHOD, prefix=prefix)
    of_given = Tally(schema, evaluator, schema.protected_index, keep=KEEP_JUDGED)
    given, given_reason = apparent(of_given, settings)
    result = _result(
        evaluator, schema, settings, tally, of_given, (*given, *scores), reason or given_reason, exact=exact
    )
    places = {"domain": tally, "given": of_given} if settings.profile is None else {"given": of_given}
    kept = {place: one.judged for place, one in places.items()}
    return dataclasses.replace(result, judged={place: pair for place, pair in kept.items() if len(pair[0])})


def _result(
    evaluator: Evaluator,
    schema: Schema,
    settings: ThemisOptions,
    tally: Tally,
    of_given: Tally,
    scores: tuple[Score, ...],
    reason: str,
    *,
    exact: bool,
) -> TabularResult:
    counts = {
        "generated": tally.draws,
        "discriminatory": tally.flipped_draws,
        **({"given_rows": of_given.rows, "given_changes": of_given.flips} if of_given.rows else {}),
        "off_manifold": tally.off,
        "impossible_rows": tally.impossible,
        "evaluations": evaluator.evaluations,
        "cache_hits": evaluator.cache_hits,
        "seconds": round(evaluator.seconds, 3),
    }
    rows: tuple[Subset, ...] = ()
    pairs: tuple[Pair, ...] = ()
    if (first := tally.first) is not None:
        _, labels, possible = first
        differ = evaluator.differ(labels, possible)
        judged = Judged(labels=labels, possible=possible, discriminatory=differ, off_manifold=~differ & False)
        rows = lattice(schema, evaluator, judged)
        try:
            pairs = minimal_pairs(schema, evaluator, of_given.found)
            if len(pairs) < PAIRS:
                pairs += minimal_pairs(schema, evaluator, tally.found, limit=PAIRS - len(pairs))
        except BudgetExceeded:
            pass
    notes = [
        "Every possible row was judged; the scores of the domain are exact."
        if exact and not reason
        else "Rows were drawn independently; equal draws were kept, because a rate needs them."
    ]
    if schema.constraints:
        notes.append(
            "Rows that break a constraint between columns are in no score; cases that change only through "
            "such rows are counted apart (off-manifold)."
        )
    if not any(s.name.endswith("group") for s in scores) and (why := tally.no_group()):
        notes.append(f"No group score: {why}.")
    cases, rows_found = _found(tally, of_given)
    return TabularResult(
        method="themis",
        mode=settings.mode,
        sampling="iid",
        options=settings.plain(),
        counts=counts,
        scores=scores,
        lattice=rows,
        pairs=pairs,
        details={"lattice_rows": "the first rows drawn" if not exact else "the first rows of the domain"},
        found=cases,
        found_given=rows_found,
        status="partial" if reason else "complete",
        status_reason=reason,
        notes=tuple(notes),
    )


def _found(tally: Tally, of_given: Tally) -> tuple[Codes, Given | None]:
    """What was found among cases of the domain, and among rows as they are (given ones, or those of a profile)."""
    found = [tally.found, of_given.found]
    codes = [part for part in found if not isinstance(part, Given)]
    given = [part for part in found if isinstance(part, Given) and len(part)]
    none = np.empty((0, tally.schema.d), dtype=np.int32)
    return np.concatenate([none, *codes]), given[0] if given else None


def walks(evaluator: Evaluator, schema: Schema, settings: ThemisOptions) -> bool:
    """Whether the whole domain is walked through instead of sampled."""
    if settings.profile is not None or settings.enumerate is False:
        return False
    if settings.enumerate and schema.size > ENUMERABLE:
        raise ConfigError(
            f"the domain has {plural(schema.size, 'row')}; at most {ENUMERABLE:,} can be walked through"
        )
    left = evaluator.remaining
    fits = schema.size <= ENUMERABLE and (left is None or schema.size <= left)
    return bool(settings.enumerate) or (settings.enumerate is None and fits and not evaluator.slow)


def sampler(schema: Schema, settings: ThemisOptions, rng: np.random.Generator) -> Sampler:
    """Where rows come from: the profile, or the uniform distribution over the domain."""
    profile = settings.profile
    if profile is None:
        return lambda n: uniform(schema, n, rng)
    return lambda n: profile.sample(schema, n, rng)


def sample(tally: Tally, draw: Sampler, settings: ThemisOptions) -> str:
    """Add rows until both scores are known to ± epsilon, or ``max_samples``; why there is no score, or ""."""
    m = len(tally.combos)
    chunk = max(1, tally.evaluator.batch // m)
    target = min(max(settings.least, 1), settings.max_samples)
    while True:
        while tally.draws < target:
            n = min(chunk, target - tally.draws)
            if not tally.evaluator.affordable(n, m):
                raise BudgetExceeded("the limit of model evaluations or seconds was reached")
            tally.add(draw(tally.evaluator.affordable(n, m)))
        if target >= settings.max_samples or _narrow(tally, settings):
            break
        target = min(settings.max_samples, target * 2, target + max(1, LARGEST_BATCH // m))
    if not tally.rows:
        return f"none of {plural(tally.draws, 'row')} drawn satisfies the constraints of the schema"
    return ""


def _narrow(tally: Tally, settings: ThemisOptions) -> bool:
    causal = tally.causal(settings.confidence, confidence_sequence, METHOD)
    if causal is None or (causal.high - causal.low) / 2 > settings.epsilon:
        return False
    group = tally.group(settings.confidence, confidence_sequence, METHOD)
    return group is None or (group[0].high - group[0].low) / 2 <= settings.epsilon


def apparent(tally: Tally, settings: ThemisOptions) -> tuple[tuple[Score, ...], str]:
    """Scores on the given rows (Definition 3.8): what changes them, and how their groups fare."""
    evaluator = tally.evaluator
    if settings.data is None or not len(settings.data):
        return (), ""
    chunk = max(1, evaluator.batch // len(tally.combos))
    rows = settings.data
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        ended = "the limit was reached"
        if evaluator.affordable(len(part), len(tally.combos)) == len(part):
            try:
                tally.add(part, weigh="given")
                continue
            except BudgetExceeded as error:  # a server that is gone, or time that ended within a call
                ended = str(error)
        return (), f"{ended} after {start:,} of {plural(len(rows), 'given row')}: no score of them"
    return (
        tally.scores("given rows", settings.confidence, _clopper_pearson, GIVEN_METHOD, prefix="apparent_"),
        "",
    )


def _clopper_pearson(successes: int, n: int, level: float) -> tuple[float, float]:
    estimate = clopper_pearson(successes, n, level)
    return estimate.low, estimate.high
