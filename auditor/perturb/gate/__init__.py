"""Validity: whether a variant is a text that its original could have been."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from auditor.core.protocols import Gate
from auditor.core.types import Case, Check, Variant


class TextGate(Gate):
    """A gate that reads texts, many originals together; what it cannot read it calls unknown."""

    reads: ClassVar[str] = "the gate reads"

    def check(self, original: Variant, variants: Sequence[Variant]) -> list[Check]:
        """Return one check for each variant of ``original``, in their order."""
        return self.check_many([Case(id="", suite="", original=original, variants=tuple(variants))])[0]

    @abstractmethod
    def check_many(self, cases: Iterable[Case]) -> list[list[Check]]:
        """Check the variants of several cases together, which makes larger batches for the parser."""

    def _result(self, variant: Variant, status: Literal["valid", "invalid", "unknown"], reason: str = "") -> Check:
        return Check(variant_id=variant.id, check=self.name, status=status, reason=reason)

    def _judged(self, variant: Variant, wrong: str) -> Check:
        """A check by what is wrong, "" where nothing is."""
        return self._result(variant, "invalid" if wrong else "valid", wrong)

    def _row(self, variant: Variant) -> Check:
        return self._result(variant, "unknown", f"{self.reads} texts, and this input is a table row")
