"""The LLM bias auditor: asks a model the same thing about different people, measures whether the answer changes.

>>> from auditor import audit
>>> audit("sentiment", model="vader", limit=3).complete
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from auditor._version import __version__

if TYPE_CHECKING:
    from auditor.config import Plan
    from auditor.errors import AuditError, CallError, UserError
    from auditor.protocols import Model, Oracle, Reply, Suite, Validity
    from auditor.result import Result, aaudit, audit, load, resume
    from auditor.types import Case, Edit, Estimate, Finding, Seed, Variant, Verdict

_HOME = {
    "Plan": "auditor.config",
    "AuditError": "auditor.errors",
    "CallError": "auditor.errors",
    "UserError": "auditor.errors",
    "Model": "auditor.protocols",
    "Oracle": "auditor.protocols",
    "Reply": "auditor.protocols",
    "Suite": "auditor.protocols",
    "Validity": "auditor.protocols",
    "Result": "auditor.result",
    "aaudit": "auditor.result",
    "audit": "auditor.result",
    "load": "auditor.result",
    "resume": "auditor.result",
    "Case": "auditor.types",
    "Edit": "auditor.types",
    "Estimate": "auditor.types",
    "Finding": "auditor.types",
    "Seed": "auditor.types",
    "Variant": "auditor.types",
    "Verdict": "auditor.types",
}

__all__ = [
    "AuditError",
    "CallError",
    "Case",
    "Edit",
    "Estimate",
    "Finding",
    "Model",
    "Oracle",
    "Plan",
    "Reply",
    "Result",
    "Seed",
    "Suite",
    "UserError",
    "Validity",
    "Variant",
    "Verdict",
    "__version__",
    "aaudit",
    "audit",
    "load",
    "resume",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: ``import auditor`` stays quick."""
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'auditor' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names."""
    return __all__
