"""The options of SG by name; defaults are the paper's where it states one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field

from auditor.core.errors import ConfigError
from auditor.tables.options import OptionSet

PAPER: Mapping[str, object] = {"neighbourhood": "marginal", "order": "confidence", "seed_share": 0.0, "batch": 1}


class SgOptions(OptionSet):
    """How SG searches."""

    method: ClassVar[str] = "sg"
    limit: int = Field(1000, ge=1)  # distinct cases to generate
    max_seconds: float | None = Field(None, gt=0)  # or stop after this time (its Table 4)
    # K-means clusters of the given rows in turn, the rows shuffled, or uniform rows (its Tables 8–10).
    seed_source: Literal["clusters", "data", "random"] = "clusters"
    clusters: int = Field(4, ge=1)  # for K-means
    threshold: float = Field(0.3, ge=0, le=1)  # T1: global search stops at a predicate of lower confidence
    rank_seed: float = 5.0  # Rank1; higher leaves the queue first
    rank_local: float = 10.0  # Rank2
    rank_global: float = 1.0  # Rank3
    local_search: bool = True  # off in its Tables 8, 10 and 11
    global_search: bool = True
    samples: int = Field(5000, ge=1)  # rows in a LIME neighbourhood (LIME's default)
    # LIME around the input; every column nominal, as released reimplementations have it; the rows asked so far, at no
    # further cost; or `asked` if the limit does not allow one neighbourhood per 50 cases, else `around`.
    neighbourhood: Literal["auto", "around", "marginal", "asked"] = "auto"
    # Local inputs by the success of their seed and of their kind of step, or by the paper's rank alone.
    order: Literal["learned", "confidence"] = "learned"
    seed_share: float = Field(0.1, ge=0, le=1)  # share of inputs taken from the seeds first; 0 in the paper
    batch: int = Field(8, ge=1)  # inputs judged at once; 1 is the paper's order exactly
    coverage: bool = True  # count path coverage and distinct faults on a surrogate tree afterwards

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Self:
        """As of every method; ``protocol="sg"`` stands for the paper's own order, which other values override."""
        given = {k: v for k, v in options.items() if k != "protocol" and v is not None}
        protocol = options.get("protocol") or "default"
        if protocol not in ("default", "sg"):
            raise ConfigError(f"--method sg has the protocols default and sg; got {protocol!r}")
        return super().of({**PAPER, **given} if protocol == "sg" else given)
