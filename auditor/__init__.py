"""The LLM bias auditor: asks a model the same thing about different people, measures whether the answer changes.

>>> from auditor import audit
>>> audit("sentiment", model="vader", limit=3).complete
True
"""

from __future__ import annotations

from auditor._version import __version__

TYPE_CHECKING = False  # `typing` is slow to load, and the help of the command needs nothing of it
if TYPE_CHECKING:
    from typing import Any

    from auditor.core.errors import AuditError, CallError, UserError
    from auditor.core.plan import Plan
    from auditor.core.protocols import Gate, Model, Oracle, Renderer, Reply, Suite
    from auditor.core.types import Case, Edit, Estimate, Finding, SourceText, Variant, Verdict
    from auditor.run.audit import Result, aaudit, audit, load, resume

_HOME = {
    "Plan": "auditor.core.plan",
    "AuditError": "auditor.core.errors",
    "CallError": "auditor.core.errors",
    "UserError": "auditor.core.errors",
    "Gate": "auditor.core.protocols",
    "Model": "auditor.core.protocols",
    "Renderer": "auditor.core.protocols",
    "Oracle": "auditor.core.protocols",
    "Reply": "auditor.core.protocols",
    "Suite": "auditor.core.protocols",
    "Result": "auditor.run.audit",
    "aaudit": "auditor.run.audit",
    "audit": "auditor.run.audit",
    "load": "auditor.run.audit",
    "resume": "auditor.run.audit",
    "Case": "auditor.core.types",
    "Edit": "auditor.core.types",
    "Estimate": "auditor.core.types",
    "Finding": "auditor.core.types",
    "SourceText": "auditor.core.types",
    "Variant": "auditor.core.types",
    "Verdict": "auditor.core.types",
}

__all__ = [
    "AuditError",
    "CallError",
    "Case",
    "Edit",
    "Estimate",
    "Finding",
    "Gate",
    "Model",
    "Oracle",
    "Plan",
    "Renderer",
    "Reply",
    "Result",
    "SourceText",
    "Suite",
    "UserError",
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
