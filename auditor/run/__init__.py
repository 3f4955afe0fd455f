"""The pipeline of an audit of texts: its parts, the loop over rounds, confirmation, dry run and replay."""

from auditor.run.audit import plan_of, plan_record, require_same_inputs, root_folder, run_audit, run_sync
from auditor.run.confirm import confirm, label_text, lattice_cells
from auditor.run.dryrun import estimate
from auditor.run.loop import Loop, Tally, silent
from auditor.run.parts import BARE, Parts, StoredCases, formats_for, prepare
from auditor.run.replay import replay
from auditor.run.rounds import ROUND

__all__ = [
    "BARE",
    "ROUND",
    "Loop",
    "Parts",
    "StoredCases",
    "Tally",
    "confirm",
    "estimate",
    "formats_for",
    "label_text",
    "lattice_cells",
    "plan_of",
    "plan_record",
    "prepare",
    "replay",
    "require_same_inputs",
    "root_folder",
    "run_audit",
    "run_sync",
    "silent",
]
