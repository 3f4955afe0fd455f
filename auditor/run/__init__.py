"""The pipeline of an audit of texts: its parts, the loop over rounds, confirmation, dry run and replay."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from auditor.run.audit import plan_record, require_same_inputs, run_audit, run_sync
    from auditor.run.dryrun import estimate
    from auditor.run.loop import Loop
    from auditor.run.preparation import Parts, plan_of, prepare
    from auditor.run.state import Tally, silent

__all__ = [
    "Loop",
    "Parts",
    "Tally",
    "estimate",
    "plan_of",
    "plan_record",
    "prepare",
    "require_same_inputs",
    "run_audit",
    "run_sync",
    "silent",
]
# Imported when it is asked for: rows need frozen plans of this package, and none of its loop.
_HOME = dict.fromkeys(("plan_record", "require_same_inputs", "run_audit", "run_sync"), "audit")
_HOME |= dict.fromkeys(("Parts", "plan_of", "prepare"), "preparation") | {"estimate": "dryrun", "Loop": "loop"}
_HOME |= dict.fromkeys(("Tally", "silent"), "state")


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(name)
    return getattr(import_module(f"auditor.run.{_HOME[name]}"), name)
