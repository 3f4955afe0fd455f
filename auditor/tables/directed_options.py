"""The options of Aequitas by name, with the paper's values as defaults."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from auditor.core.errors import ConfigError
from auditor.tables.distance import EXACT, Distance
from auditor.tables.schema import Schema

Mode = Literal["random", "semi", "fully", "population"]
TRIALS, TRIAL_SIZE = 400, 1_000  # the paper's
ESTIMATE_ROWS = 4_000_000  # that the model is asked about for the share, unless more is asked for
LEAST_CASES = 100  # of the share, however many combinations there are
MODES: tuple[Mode, ...] = ("random", "semi", "fully", "population")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How Aequitas searches.

    Parameters
    ----------
    mode : {"random", "semi", "fully", "population"}
        Local search of the paper (section 4.2) with no, with direction, or with direction and column
        probabilities updated; ``population`` is this project's own search.
    global_n, local_n : int
        Trials of the global search, and of the local search around each row it found. The paper gives no
        numbers; 2,000 and 1,000 are those of the released fully directed script.
    delta_v, delta_pr : float
        How far one answer moves the probability of a direction and of a column; the paper's 0.001.
    walk : {"return", "drift"}
        Where a walk goes on after a step to a row that is not discriminatory: ``drift`` from there, as
        Algorithm 2 is printed; ``return`` from the discriminatory row before it. The released code lies
        between the two: its optimiser takes a step back with probability 1 − e⁻² = 0.86.
    steps : mapping of column name to sequence of int
        Sizes of a step, one of them drawn uniformly for each step of that column; columns that are not
        named step by 1 (the paper's Γ = {−1, +1}).
    max_found : int, optional
        Stop once so many distinct discriminatory cases are known (section 4.5, first rule).
    max_seconds : float, optional
        Stop after so much wall time (section 4.5, second rule).
    generated : int, optional
        Stop once so many distinct cases were judged. ``population`` needs it (default 1,000).
    batch : int, optional
        Cases that ``population`` judges between two updates; default: growing with what it knows.
    ask : {"all", "witness"}
        ``population`` only. ``all``: every combination of protected values of every case. ``witness``:
        a case made from a find is first asked with the pair of combinations that told the find apart, and
        counts as undecided if the answers agree: fewer calls, for slow models.
    trials, trial_size : int
        K and m of the share estimate (section 4.3): K samples of m rows, drawn uniformly. The paper's figure
        has K = 400 and m = 1,000; `read` takes fewer, down to one sample of 100, where the model would be asked about
        more than `ESTIMATE_ROWS` rows for it. ``trials=0``: the estimate comes from the global search, whose rows
        are uniform too.
    level : float
        Confidence level of the share's interval.
    """

    mode: Mode = "fully"
    global_n: int = 2000
    local_n: int = 1000
    delta_v: float = 0.001
    delta_pr: float = 0.001
    walk: Literal["return", "drift"] = "return"
    steps: Mapping[str, Sequence[int]] = field(default_factory=dict)
    max_found: int | None = None
    max_seconds: float | None = None
    generated: int | None = None
    batch: int | None = None
    ask: Literal["all", "witness"] = "all"
    trials: int = TRIALS
    trial_size: int = TRIAL_SIZE
    level: float = 0.95

    def __post_init__(self) -> None:
        for name, allowed in (("mode", MODES), ("walk", ("return", "drift")), ("ask", ("all", "witness"))):
            if (value := getattr(self, name)) not in allowed:
                raise ConfigError(f"aequitas: {name} must be one of {', '.join(allowed)}; got {value!r}")
        for name, least in (("global_n", 1), ("local_n", 0), ("trials", 0), ("trial_size", 1)):
            if (value := getattr(self, name)) < least:
                raise ConfigError(f"aequitas: {name} must be at least {least}, got {value}")
        for name in ("max_found", "max_seconds", "generated", "batch"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise ConfigError(f"aequitas: {name} must be above 0, got {value}")
        for name in ("delta_v", "delta_pr"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise ConfigError(f"aequitas: {name} must lie in [0, 1], got {value}")
        if not 0 < self.level < 1:
            raise ConfigError(f"aequitas: level must lie in (0, 1), got {self.level}")
        if self.ask == "witness" and self.mode != "population":
            raise ConfigError("aequitas: ask=witness belongs to mode=population; the paper's walks ask all")
        for name, sizes in self.steps.items():
            if not sizes or any(int(s) != s or s < 1 for s in sizes):
                raise ConfigError(f"aequitas: steps of {name!r} must be whole numbers from 1, got {sizes}")

    @classmethod
    def read(cls, options: Mapping[str, Any], schema: Schema) -> Options:
        """Options from a mapping; ``data`` is left out, None means the default.

        Raises
        ------
        ConfigError
            An option is unknown or out of range, or ``steps`` names no column that may be changed.
        """
        known = {item.name for item in fields(cls)}
        given = {k: v for k, v in options.items() if k != "data" and v is not None}
        given = _estimate_size(schema, given) | given
        if unknown := sorted(set(given) - known):
            raise ConfigError(f"aequitas has no option {unknown[0]!r}; options: {', '.join(sorted(known))}")
        result = cls(**given)
        movable = {schema.names[int(i)] for i in schema.movable_index}
        for name in result.steps:
            if name not in movable:
                raise ConfigError(
                    f"aequitas: steps names {name!r}, which is no column that a search may change; "
                    f"columns: {', '.join(sorted(movable))}"
                )
        return result

    def record(self, distance: Distance) -> dict[str, Any]:
        """Every option with its value, and the threshold γ that the distance stands for."""
        return {
            **asdict(self),
            "steps": {k: list(v) for k, v in self.steps.items()},
            "gamma": distance.threshold * distance.scale if distance.kind == "absolute" else 0.0,
        }


def _estimate_size(schema: Schema, given: Mapping[str, Any]) -> dict[str, int]:
    """K and m where nothing was said about either: the paper's, or as many as `ESTIMATE_ROWS` allow."""
    if "trials" in given or "trial_size" in given or not len(schema.protected_index):
        return {}
    cases = max(LEAST_CASES, ESTIMATE_ROWS // math.prod(schema.cards[schema.protected_index].tolist()))
    size = min(TRIAL_SIZE, cases)
    return {"trials": min(TRIALS, cases // size), "trial_size": size}


def gamma_distance(gamma: float) -> Distance:
    """The distance under which two outputs differ if they are more than ``gamma`` apart (Definition 1).

    Examples
    --------
    >>> gamma_distance(0.0).kind, gamma_distance(0.25).threshold * gamma_distance(0.25).scale
    ('exact', 0.25)
    """
    if gamma < 0:
        raise ConfigError(f"gamma must be at least 0, got {gamma}")
    return EXACT if gamma == 0 else Distance(kind="absolute", threshold=0.5, scale=2 * gamma)
