"""``audit ll144``: the tables of New York City Local Law 144 from recorded outcomes."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator

from auditor.cli import frame
from auditor.cli.frame import takes
from auditor.cli.run_folders import say_where
from auditor.cli.screen import must_be_new, say, screen
from auditor.core.errors import ConfigError
from auditor.core.options import Listed, Option, PlanModel
from auditor.core.plan import Plan
from auditor.core.record import RunRecord, read
from auditor.core.shared_plan import FURTHER
from auditor.core.shown import quoted
from auditor.store.disk import write_bytes

if TYPE_CHECKING:
    from auditor.contrib.ll144.draft import Settings

LL144 = frozenset({"ll144"})


def _as_date(text: object) -> object:
    try:
        return datetime.date.fromisoformat(text) if isinstance(text, str) else text
    except ValueError:
        raise ValueError("must be a date as YYYY-MM-DD") from None


Date = Annotated[datetime.date | None, BeforeValidator(_as_date)]


class OutcomeOptions(PlanModel):
    """What ``audit ll144`` is told."""

    # fmt: off
    data: Annotated[Path | None, Plan.flags()["data"].meaning(LL144, "CSV with one applicant a line.")] = None
    counts: Annotated[Path | None, Option("--counts", FURTHER, LL144,
        "CSV with sex, race, n, and selected or above_median; * is all.")] = None
    sex: Annotated[str | None, Option("--sex", FURTHER, LL144, "Column of the sex.")] = None
    race: Annotated[str | None, Option("--race", FURTHER, LL144, "Column of race/ethnicity.")] = None
    ethnicity: Annotated[str | None, Option("--ethnicity", FURTHER, LL144,
        "Column that says Hispanic or Latino, if there is one.")] = None
    selected: Annotated[str | None, Option("--selected", FURTHER, LL144, "Column of the outcome: yes or no.")] = None
    score: Annotated[str | None, Option("--score", FURTHER, LL144, "Column of the score: numbers.")] = None
    group: Annotated[str | None, Option("--group", FURTHER, LL144,
        "Column of groups; each group gets its tables. Without --selected and --score, membership in a group is the "
        "outcome."
    )] = None
    excluded: Annotated[tuple[str, ...], Listed, Option("--exclude-below-2-percent", FURTHER, LL144,
        '"CATEGORY=JUSTIFICATION": leave a category below 2 % out of the impact ratios.', repeated=True)] = ()
    unknown_in_median: Annotated[bool, Option("--unknown-in-median", FURTHER, LL144,
        "Include people of unknown category in the median.")] = False
    partly_known: Annotated[bool, Option("--partly-known", FURTHER, LL144,
        "Count people with one unknown attribute in the table of the other.")] = False
    source: Annotated[str | None, Option("--source", FURTHER, LL144,
        "Source of the outcomes: the system, the dates, and who collected them.")] = None
    audit_date: Annotated[Date, Option("--audit-date", FURTHER, LL144, "YYYY-MM-DD; else left empty.")] = None
    distribution_date: Annotated[Date, Option("--distribution-date", FURTHER, LL144,
        "Date the use began (YYYY-MM-DD); else left empty.")] = None
    data_kind: Annotated[str | None, Option("--data-kind", FURTHER, LL144,
        "historical or test. Without it, the report says that the kind of data was not given.")] = None
    test_data_reason: Annotated[str | None, Option("--test-data-reason", FURTHER, LL144,
        "Reason for not using historical data.")] = None
    test_data_generation: Annotated[str | None, Option("--test-data-generation", FURTHER, LL144,
        "How the test data were made and obtained.")] = None
    map: Annotated[Path | None, Option("--map", FURTHER, LL144, "YAML with your own category values.")] = None
    write_map: Annotated[Path | None, Option("--write-map", FURTHER, LL144,
        "Write the category map to edit, and stop.")] = None
    # fmt: on

    def columns(self) -> dict[str, str | None]:
        """What columns of --data say, by the options that name them."""
        names = ("sex", "race", "ethnicity", "selected", "score", "group")
        return {name: getattr(self, name) for name in names}


@takes("ll144", OutcomeOptions)
@frame.printed
@frame.full
@frame.out(help="Write FILE.html or FILE.json as well, or a run folder below DIR (audit report, verify, compare).")
def ll144(*, format: str, full: bool, out: Path | None, **typed: object) -> int:
    """Compute selection or scoring rates and impact ratios as 6 RCNY 5-301 asks, and a draft summary.

    Only an independent auditor can make these tables a bias audit under Local Law 144.
    """
    from auditor.contrib.ll144.draft import Settings
    from auditor.run import outcome_folder

    options = OutcomeOptions.model_validate(typed)
    inputs = (options.data, options.counts)
    if options.write_map is not None:
        return _write_map(options.write_map)
    if sum(f is not None for f in inputs) != 1:
        raise ConfigError("give one of --data FILE and --counts FILE. See: audit ll144 --help")
    if out is not None and out.suffix and out.suffix not in (".html", ".json") and not out.is_dir():
        raise ConfigError(f"--out writes a .html or a .json file, or run folders below a folder; got {out}")
    started = datetime.datetime.now(datetime.UTC)
    own = {field.name: getattr(options, field.name) for field in fields(Settings)}
    settings = Settings(**own | {"excluded": _exclusions(options.excluded)})
    record = _record(options, settings)
    if out is None or out.suffix in (".html", ".json"):
        return _show(read(record), format, out, full)
    chosen = options.columns() | {"map": options.map}
    plan = {
        "data": str(next(filter(None, inputs))),
        "options": {k: str(v) for k, v in chosen.items() if v is not None},
        "settings": {k: str(v) if isinstance(v, datetime.date) else v for k, v in asdict(settings).items()},
        "out": str(out),
    }
    say_where(outcome_folder.write(record, plan, out, started=started))
    return _show(read(record), format, None, full)


def _record(options: OutcomeOptions, settings: Settings) -> dict[str, object]:
    """The record of the input that was named; options that go with another are refused."""
    if options.data is None:
        _refuse(options.columns() | {"unknown_in_median": options.unknown_in_median}, "--data")
        assert options.counts is not None
        return _from_counts(options.counts, settings, options.map)
    return _from_data(options.data, options.columns(), settings, options.map)


def _refuse(options: Mapping[str, object], needed: str) -> None:
    """Refuse options that were given although they go with an input of another kind."""
    flags = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if flags:
        raise ConfigError(f"{', '.join(flags)}: only with {needed} FILE")


def _from_data(
    path: Path, columns: Mapping[str, str | None], settings: Settings, map_file: Path | None
) -> dict[str, object]:
    from auditor.contrib.ll144 import applicants, categories, draft

    settings.check()
    further = dict(columns)
    sex, race = further.pop("sex"), further.pop("race")
    selected, score, group = (further[name] for name in ("selected", "score", "group"))
    if sex is None or race is None:
        raise ConfigError("--data needs --sex COLUMN and --race COLUMN")
    if selected and score:
        raise ConfigError("--selected and --score are two ways to measure: give one of them")
    if not selected and not score and not group:
        raise ConfigError("--data needs --selected COLUMN or --score COLUMN (or --group COLUMN alone)")
    mode = "selection" if selected else "scoring" if score else "classification"
    rows, source = applicants.read_people(path, categories.load(map_file), sex=sex, race=race, **further)
    if not any(p.sex and p.race for p in rows):
        raise applicants.no_known(path, source)
    return draft.from_people(rows, source, settings, mode=mode)


def _from_counts(path: Path, settings: Settings, map_file: Path | None) -> dict[str, object]:
    from auditor.contrib.ll144 import applicants, categories, draft

    settings.check()
    cells, mode, source = applicants.read_counts(path, categories.load(map_file))
    if not any(c.n and c.sex and c.race for c in cells):
        raise applicants.no_known(path, source)
    return draft.from_counts(cells, source, settings, mode=mode)


def _exclusions(texts: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        category, _, reason = text.partition("=")
        if not category.strip() or not reason.strip():
            raise ConfigError(
                f'--exclude-below-2-percent needs "CATEGORY=JUSTIFICATION", as the published summary has to '
                f"carry the justification (6 RCNY 5-301(d)); got {text!r}"
            )
        pairs[category.strip()] = reason.strip()
    return pairs


def _write_map(path: Path) -> int:
    from auditor.contrib.ll144.categories import DEFAULT

    must_be_new(path, "exists already; give another file with --write-map.")
    write_bytes(path, DEFAULT.read_bytes())
    say(path, f"Next: edit it, then audit ll144 --map {quoted(path)} …")
    return 0


def _show(record: RunRecord, format: str, out: Path | None, full: bool) -> int:
    from auditor.report import html, outcome_report, terminal
    from auditor.report.exchange import JsonReport
    from auditor.report.page import Page

    if out is not None:
        page = out.suffix == ".html"
        text = html.write(outcome_report.build(record), record) if page else JsonReport().render(record)
        write_bytes(out, text.encode("utf-8"))
        say(f"Report: {out}", to=sys.stderr)
    if format == "json":
        sys.stdout.write(JsonReport().render(record))
    else:
        sys.stdout.write(terminal.write(Page(**screen()), outcome_report.build(record), full=full))
    return 0
