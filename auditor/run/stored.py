"""The tables of a run that ended, filled from its folder."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

import numpy as np

from auditor.core.record import read
from auditor.core.types import Case, Variant
from auditor.measure.compare import Asked, Side
from auditor.run.observed import Observed
from auditor.store.compact import short
from auditor.store.folder import RunFolder

WHOLE = 17  # characters of the id of a text; those of a directed case go on with what is in it


def side(path: Path) -> Side:
    """What `auditor.measure.compare` reads of a run: its record, and what was judged of which text.

    Raises
    ------
    RunFolderError
        It is no run folder, or holds no result yet.
    """
    folder = RunFolder.open(path)
    record = read(folder.record())
    wanted = {one for finding in record.findings for one in finding.exemplars}
    observed, keys, exemplars = Observed(), (array("Q"), array("Q")), {}
    for case, checks in folder.cases():
        valid = {v.id for v in case.variants if (c := checks.get(v.id)) is None or c.status != "invalid"}
        observed.add(case, valid)
        for variant in (case.original, *(v for v in case.variants if v.id in valid)):
            key = _key(case, variant)
            keys[case.sampling == "directed"].append(key)
            if variant.id in wanted:
                exemplars[variant.id] = key
    for verdict in folder.verdicts():
        observed.judge(verdict)
    drawn, directed = (
        Asked(table, np.array(own, dtype=np.uint64))
        for table, own in zip((observed.table, observed.directed), keys, strict=True)
    )
    return Side(record=record, drawn=drawn, directed=directed, exemplars=exemplars)


def _key(case: Case, variant: Variant) -> int:
    value = variant.input
    text = value if isinstance(value, str) else json.dumps(dict(value), sort_keys=True)
    name = case.id[:WHOLE] if case.sampling == "directed" else case.id
    return short(f"{name}\0{text}")
