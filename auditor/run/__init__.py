"""The pipeline of an audit of texts: its parts, the loop over rounds, confirmation, dry run and replay."""

from auditor.run.audit import plan_record, require_same_inputs, run_audit, run_sync
from auditor.run.build import Parts, plan_of, prepare
from auditor.run.dryrun import estimate
from auditor.run.loop import Loop
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
