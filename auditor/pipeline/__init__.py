"""The pipeline of an audit of texts: its parts, the loop over rounds, confirmation, dry run and replay."""

from auditor.pipeline.confirm import confirm, label_text, lattice_cells
from auditor.pipeline.dryrun import estimate
from auditor.pipeline.loop import About, Loop, Tally, silent
from auditor.pipeline.parts import BARE, Parts, StoredCases, formats_for, prepare
from auditor.pipeline.replay import replay
from auditor.pipeline.rounds import ROUND
from auditor.pipeline.run import (
    plan_of,
    plan_record,
    require_same_inputs,
    root_folder,
    run_audit,
    run_sync,
)

__all__ = [
    "BARE",
    "ROUND",
    "About",
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
