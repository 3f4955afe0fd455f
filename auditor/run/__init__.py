"""The pipeline of an audit of texts: its parts, the loop over rounds, confirmation, dry run and replay."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from auditor.run.audit import plan_record, run_audit, run_sync
    from auditor.run.dryrun import estimate
    from auditor.run.loop import Loop
    from auditor.run.preparation import plan_of, prepare

__all__ = ["Loop", "estimate", "plan_of", "plan_record", "prepare", "run_audit", "run_sync"]
# Imported when it is asked for: rows need frozen plans of this package, and none of its loop.
_HOME = {"Loop": "loop", "estimate": "dryrun", "plan_of": "preparation", "prepare": "preparation"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module(f"auditor.run.{_HOME.get(name, 'audit')}"), name)
