"""``audit ll144``: the tables of New York City Local Law 144 from recorded outcomes."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from auditor.cli import frame
from auditor.cli.frame import must_be_new, put, say, takes
from auditor.cli.run_folders import say_where
from auditor.contrib.ll144.decisions import DECISIONS, Settings
from auditor.core.errors import ConfigError
from auditor.core.record import RunRecord, read
from auditor.core.record import frame as frame_of
from auditor.core.shown import quoted
from auditor.store.journal import write_bytes


@takes("ll144", Settings)
@frame.printed
@frame.full
@frame.out(help="Write FILE.html or FILE.json as well, or a run folder below DIR (audit report, verify, compare).")
def ll144(*, format: str, full: bool, out: Path | None, **typed: object) -> int:
    """Compute selection or scoring rates and impact ratios as 6 RCNY 5-301 asks, and a draft summary.

    Only an independent auditor can make these tables a bias audit under Local Law 144.
    """
    options = Settings.model_validate(typed)
    inputs = (options.data, options.counts)
    if options.write_map is not None:
        return _write_map(options.write_map)
    if sum(f is not None for f in inputs) != 1:
        raise ConfigError("give one of --data FILE and --counts FILE. See: audit ll144 --help")
    if out is not None and out.suffix and out.suffix not in (".html", ".json") and not out.is_dir():
        raise ConfigError(f"--out writes a .html or a .json file, or run folders below a folder; got {out}")
    started = datetime.datetime.now(datetime.UTC)
    record = (_from_counts if options.data is None else _from_data)(options)
    if out is None or out.suffix in (".html", ".json"):
        return _show(read(record), format, out, full)
    chosen = options.columns() | {"map": options.map}
    plan = {
        "data": str(next(filter(None, inputs))),
        "options": {k: str(v) for k, v in chosen.items() if v is not None},
        "settings": options.model_dump(mode="json", include=set(DECISIONS)),
        "out": str(out),
    }
    say_where(_write(record, plan, out, started))
    return _show(read(record), format, None, full)


def _write(tables: Mapping[str, Any], plan: Mapping[str, object], root: Path, started: datetime.datetime) -> Path:
    """Write a run folder below ``root``: ``plan.json``, ``run.json``, ``report.html`` and empty journals."""
    from auditor.report import html, outcome_report
    from auditor.store.folder import REPORT, RunFolder

    data, kind = tables["data"], {"kind": "ll144"}
    inputs = {"outcomes": {"file": data["file"], "sha256": data["sha256"], "rows": data["rows"]}}
    with RunFolder.create(root, {**kind, "plan": plan, "inputs": inputs, "fingerprints": {}}) as folder:
        made = frame_of(folder.id, folder.plan_sha256, {**kind, **plan}, inputs, started)
        folder.write_run({**tables, **made, "counts": {"rows": data["rows"]}})
        written = folder.run()
        folder.write_text(REPORT, html.write(outcome_report.build(written), written))
        return folder.path


def _from_data(settings: Settings) -> dict[str, object]:
    from auditor.contrib.ll144 import applicants, categories, draft

    path = settings.data
    assert path is not None
    selected, score, group = settings.selected, settings.score, settings.group
    if settings.sex is None or settings.race is None:
        raise ConfigError("--data needs --sex COLUMN and --race COLUMN")
    if selected and score:
        raise ConfigError("--selected and --score are two ways to measure: give one of them")
    if not selected and not score and not group:
        raise ConfigError("--data needs --selected COLUMN or --score COLUMN (or --group COLUMN alone)")
    mode = "selection" if selected else "scoring" if score else "classification"
    rows, source = applicants.read_people(path, categories.load(settings.map), settings.columns())
    if not any(p.sex and p.race for p in rows):
        raise applicants.no_known(path, source)
    return draft.from_people(rows, source, settings, mode=mode)


def _from_counts(settings: Settings) -> dict[str, object]:
    from auditor.contrib.ll144 import applicants, categories, draft

    path, of_data = settings.counts, settings.columns() | {"unknown_in_median": settings.unknown_in_median}
    assert path is not None
    if flags := [settings.flag(name) for name, value in of_data.items() if value]:
        raise ConfigError(f"{', '.join(flags)}: only with --data FILE")
    cells, mode, source = applicants.read_counts(path, categories.load(settings.map))
    if not any(c.n and c.sex and c.race for c in cells):
        raise applicants.no_known(path, source)
    return draft.from_counts(cells, source, settings, mode=mode)


def _write_map(path: Path) -> int:
    from auditor.contrib.ll144.categories import DEFAULT

    must_be_new(path, "exists already; give another file with --write-map.")
    write_bytes(path, DEFAULT.read_bytes())
    say(path, f"Next: edit it, then audit ll144 --map {quoted(path)} …")
    return 0


def _show(record: RunRecord, format: str, out: Path | None, full: bool) -> int:
    from auditor.report import html, outcome_report
    from auditor.report.exchange import to_json

    document = outcome_report.build(record)
    if out is not None:
        text = html.write(document, record) if out.suffix == ".html" else to_json(record.raw)
        write_bytes(out, text.encode("utf-8"))
        say(f"Report: {out}", to=sys.stderr)
    put(record.raw, format, document, full=full)
    return 0
