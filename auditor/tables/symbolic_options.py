"""The options of SG."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from auditor.core.errors import ConfigError

SOURCES = ("clusters", "data", "random")
PAPER: Mapping[str, Any] = {"neighbourhood": "marginal", "order": "confidence", "seed_share": 0.0, "batch": 1}
NEIGHBOURHOODS = ("auto", "around", "marginal", "asked")


@dataclass(frozen=True, kw_only=True, slots=True)
class SgOptions:
    """Options of SG; defaults are the paper's where it states one.

    Parameters
    ----------
    limit : int
        Distinct cases to generate.
    max_seconds : float, optional
        Or stop after this time (its Table 4).
    seed_source : {"clusters", "data", "random"}
        K-means clusters of the given rows in turn; the rows shuffled; or uniform rows (its Tables 8–10).
    clusters : int
        For K-means.
    threshold : float
        T1: global search stops at the first predicate of a path whose confidence is lower.
    rank_seed, rank_local, rank_global : float
        Rank1 to Rank3; higher leaves the queue first.
    local_search, global_search : bool
        Switch off a phase (its Tables 8, 10, 11).
    samples : int
        Rows in a LIME neighbourhood (LIME's default).
    neighbourhood : {"auto", "around", "marginal", "asked"}
        ``around``: LIME around the input. ``marginal``: every column nominal to LIME, as released
        reimplementations have it. ``asked``: the rows the model was asked so far, at no further cost.
        ``auto``: ``asked`` if the limit of evaluations does not allow one neighbourhood per 50 cases,
        else ``around``.
    order : {"learned", "confidence"}
        How local inputs are ordered: by the success of the seed they descend from and of their kind of
        step, or by the paper's rank alone.
    seed_share : float
        Share of the inputs taken from the seeds while others of higher rank wait, in [0, 1]; 0 in the paper.
        It spreads the search over more starting points.
    batch : int
        Inputs judged at once; 1 is the paper's order exactly.
    coverage : bool
        Whether path coverage and distinct faults are counted on a surrogate tree afterwards.

    Raises
    ------
    ConfigError
        A value is out of range.
    """

    limit: int = 1000
    max_seconds: float | None = None
    seed_source: Literal["clusters", "data", "random"] = "clusters"
    clusters: int = 4
    threshold: float = 0.3
    rank_seed: float = 5.0
    rank_local: float = 10.0
    rank_global: float = 1.0
    local_search: bool = True
    global_search: bool = True
    samples: int = 5000
    neighbourhood: Literal["auto", "around", "marginal", "asked"] = "auto"
    order: Literal["learned", "confidence"] = "learned"
    seed_share: float = 0.1
    batch: int = 8
    coverage: bool = True

    def __post_init__(self) -> None:
        self._check_types()
        for name in ("limit", "clusters", "samples", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0 <= self.threshold <= 1:
            raise ConfigError(f"threshold must be between 0 and 1, got {self.threshold}")
        if not 0 <= self.seed_share <= 1:
            raise ConfigError(f"seed_share must be between 0 and 1, got {self.seed_share}")
        if self.max_seconds is not None and self.max_seconds <= 0:
            raise ConfigError(f"max_seconds must be above 0, got {self.max_seconds}")
        for name, allowed in (
            ("seed_source", SOURCES),
            ("neighbourhood", NEIGHBOURHOODS),
            ("order", ("learned", "confidence")),
        ):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} must be one of {', '.join(allowed)}; got {getattr(self, name)!r}")

    def _check_types(self) -> None:
        for f in fields(self):
            value, default = getattr(self, f.name), f.default
            kind = float if default is None else type(default)
            wanted = (int, float) if kind is float else (kind,)
            good = isinstance(value, wanted) and (kind is bool) == isinstance(value, bool)
            if not good and not (value is None and default is None):
                name = {int: "a whole number", float: "a number", bool: "true or false"}.get(kind, "a name")
                raise ConfigError(f"{f.name} must be {name}, got {value!r}")

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> SgOptions:
        """From named values; ``data`` and values of None are left out.

        ``protocol="sg"`` stands for the paper's own order: `PAPER`, which other values override.

        Raises
        ------
        ConfigError
            There is no option of a name; all are listed.
        """
        known = [f.name for f in fields(cls)]
        given = {k: v for k, v in options.items() if k not in ("data", "protocol") and v is not None}
        protocol = options.get("protocol") or "default"
        if protocol not in ("default", "sg"):
            raise ConfigError(f"--method sg has the protocols default and sg; got {protocol!r}")
        if protocol == "sg":
            given = {**PAPER, **given}
        if unknown := sorted(set(given) - set(known)):
            raise ConfigError(f"--method sg has no option {unknown[0]!r}; options: {', '.join(known)}")
        return cls(**given)
