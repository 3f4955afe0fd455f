"""What the benchmarks share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


class Absent(Exception):
    """Data that a benchmark needs are not here."""


def shared(path: str) -> Path:
    """Return a file or folder of the shared data; raise `Absent` where it is missing."""
    if not (SHARED / path).exists():
        raise Absent(f"../shared/data/{path} is absent")
    return SHARED / path


@dataclass(frozen=True)
class Row:
    """One figure, and the baseline that was measured in the same run."""

    name: str
    value: float
    unit: str
    baseline_name: str = ""
    baseline: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The value divided by the baseline."""
        return self.value / self.baseline if self.baseline else None

    def line(self) -> str:
        """Return the figure as a row of a Markdown table."""
        baseline = "" if self.baseline is None else f"{self.baseline_name}: {self.baseline:,.4g}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return f"| {self.name} | {self.value:,.4g} | {self.unit} | {baseline} | {ratio} | {self.note} |"
