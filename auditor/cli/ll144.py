"""``audit ll144``: the tables of New York City Local Law 144 from recorded outcomes."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import common
from auditor.cli.common import invoke
from auditor.cli.options import option

if TYPE_CHECKING:
    from auditor.contrib.ll144.record import Settings

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
Text = str | None
FilePath = Path | None


@app.command()
def ll144(
    data: Annotated[FilePath, option("data", help="CSV with one applicant a line.")] = None,
    counts: Annotated[
        FilePath,
        typer.Option(
            "--counts",
            help="CSV with sex, race, n, and selected or above_median, or selection_rate or scoring_rate; * is all.",
        ),
    ] = None,
    rankings: Annotated[
        FilePath,
        typer.Option(
            "--rankings",
            help="Recorded rankings (JSON lines, a provider's JSON, or a folder): test data, never an audit.",
        ),
    ] = None,
    published: Annotated[
        Text, typer.Option("--published", help="Column of --counts with published ratios: does each come out?")
    ] = None,
    sex: Annotated[Text, typer.Option("--sex", help="Column of the sex.")] = None,
    race: Annotated[Text, typer.Option("--race", help="Column of race/ethnicity.")] = None,
    ethnicity: Annotated[
        Text, typer.Option("--ethnicity", help="Column that says Hispanic or Latino, where there is one.")
    ] = None,
    selected: Annotated[Text, typer.Option("--selected", help="Column of the outcome: yes or no.")] = None,
    score: Annotated[Text, typer.Option("--score", help="Column of the score: numbers.")] = None,
    group: Annotated[
        Text,
        typer.Option(
            "--group",
            help="Column of groups: the tables for each. Without --selected and --score, "
            "being put into a group is the outcome.",
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude-below-2-percent",
            help='"CATEGORY=JUSTIFICATION": leave a category below 2 % out of the impact ratios.',
        ),
    ] = None,
    unknown_in_median: Annotated[
        bool, typer.Option("--unknown-in-median", help="Take people of unknown category into the median.")
    ] = False,
    partly_known: Annotated[
        bool, typer.Option("--partly-known", help="Count people with one unknown attribute in the table of the other.")
    ] = False,
    source: Annotated[
        Text, typer.Option("--source", help="Which system made the outcomes, when, who collected them.")
    ] = None,
    audit_date: Annotated[Text, typer.Option("--audit-date", help="YYYY-MM-DD; else left empty.")] = None,
    distribution_date: Annotated[
        Text, typer.Option("--distribution-date", help="YYYY-MM-DD the use began; else left empty.")
    ] = None,
    data_kind: Annotated[
        Text, typer.Option("--data-kind", help="historical or test; without it the report says that it was not said.")
    ] = None,
    test_data_reason: Annotated[
        Text, typer.Option("--test-data-reason", help="Why no historical data were used.")
    ] = None,
    test_data_generation: Annotated[
        Text, typer.Option("--test-data-generation", help="How the test data were made and obtained.")
    ] = None,
    leave_out: Annotated[
        Text, typer.Option("--leave-out", help="Leave out rankings whose run id contains this text.")
    ] = None,
    model: Annotated[Text, option("models", help="Of rankings by several models, those of this one.")] = None,
    map_file: Annotated[FilePath, typer.Option("--map", help="YAML with your own category values.")] = None,
    write_map: Annotated[
        FilePath, typer.Option("--write-map", help="Write the category map to edit, and stop.")
    ] = None,
    format: common.Format = "terminal",
    full: common.Full = False,
    out: Annotated[
        FilePath,
        option(
            "out",
            help="Write FILE.html or FILE.json as well, or a run folder below DIR (audit report, verify, compare).",
        ),
    ] = None,
) -> int:
    """Compute selection or scoring rates and impact ratios as 6 RCNY 5-301 asks, and a draft summary.

    Only an independent auditor can make these tables a bias audit under Local Law 144.
    """
    from auditor.contrib.ll144.record import Settings
    from auditor.core.errors import ConfigError

    common.check_format(format)
    if write_map is not None:
        return _write_map(write_map)
    if sum(f is not None for f in (data, counts, rankings)) != 1:
        raise ConfigError("give one of --data FILE, --counts FILE and --rankings FILE. See: audit ll144 --help")
    if out is not None and out.suffix and out.suffix not in (".html", ".json") and not out.is_dir():
        raise ConfigError(f"--out writes a .html or a .json file, or run folders below a folder; got {out}")
    started = datetime.datetime.now(datetime.UTC)
    if data_kind is None and rankings is None:
        data_kind = _ask_kind()
    settings = Settings(
        data_kind=data_kind,
        test_data_reason=test_data_reason,
        test_data_generation=test_data_generation,
        source=source,
        excluded=_exclusions(exclude or ()),
        unknown_in_median=unknown_in_median,
        partly_known=partly_known,
        audit_date=_date("--audit-date", audit_date),
        distribution_date=_date("--distribution-date", distribution_date),
    )
    columns = {"sex": sex, "race": race, "ethnicity": ethnicity, "selected": selected, "score": score}
    columns |= {"group": group}
    if data is None:
        _refuse([f"--{name}" for name, value in columns.items() if value], "--data")
        if unknown_in_median:
            _refuse(["--unknown-in-median"], "--data")
    if rankings is None:
        _refuse(["--published"] if published and counts is None else [], "--counts")
        _refuse([n for n, v in (("--leave-out", leave_out), ("--model", model)) if v], "--rankings")
    if data is not None:
        record = _from_data(data, columns, settings, map_file)
    elif counts is not None:
        record = _from_counts(counts, settings, map_file, published)
    else:
        assert rankings is not None
        _refuse(["--published"] if published else [], "--counts")
        of_audits = (exclude, partly_known, map_file, audit_date, distribution_date)
        if any((*of_audits, data_kind, test_data_reason, test_data_generation)):
            raise ConfigError(
                "--rankings takes --source, --leave-out, --model, --format and --out only: rankings of made-up "
                "applications are test data"
            )
        record = _from_rankings(rankings, settings, leave_out, model)
    if out is None or out.suffix in (".html", ".json"):
        return _show(record, format, out, full)
    from auditor.run import outcomes

    columns |= {
        "map": str(map_file) if map_file else None,
        "leave_out": leave_out,
        "model": model,
        "published": published,
    }
    chosen = {k: v for k, v in columns.items() if v is not None}
    given = str(data or counts or rankings)
    plan = {"data": given, "options": chosen, "settings": _plain(settings), "out": str(out)}
    path = outcomes.write(record, plan, out, started=started)
    common.say_where(path)
    return _show(record, format, None, full)


def _ask_kind() -> str | None:
    """Ask a person at a terminal what the data are; nothing is assumed where nobody is there, or does not say."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    said: str = typer.prompt(
        "Historical data of applicants, or test data? (historical, test; Enter leaves it open)",
        default="",
        show_default=False,
        err=True,
    )
    return said.strip() or None


def _plain(settings: Settings) -> dict[str, object]:
    """The settings as plain data."""
    import dataclasses

    told = dataclasses.asdict(settings)
    dates = {k: v.isoformat() for k, v in told.items() if isinstance(v, datetime.date)}
    return told | dates


def _refuse(options: Sequence[str], needed: str) -> None:
    from auditor.core.errors import ConfigError

    if options:
        raise ConfigError(f"{', '.join(options)}: only with {needed} FILE")


def _from_data(
    path: Path, columns: Mapping[str, str | None], settings: Settings, map_file: Path | None
) -> dict[str, object]:
    from auditor.contrib.ll144 import categories, people, record
    from auditor.core.errors import ConfigError

    settings.check()
    sex, race = columns["sex"], columns["race"]
    if sex is None or race is None:
        raise ConfigError("--data needs --sex COLUMN and --race COLUMN")
    if columns["selected"] and columns["score"]:
        raise ConfigError("--selected and --score are two ways to measure: give one of them")
    if not columns["selected"] and not columns["score"] and not columns["group"]:
        raise ConfigError("--data needs --selected COLUMN or --score COLUMN (or --group COLUMN alone)")
    mode = "selection" if columns["selected"] else "scoring" if columns["score"] else "classification"
    further = {name: column for name, column in columns.items() if name not in ("sex", "race")}
    found, source = people.read_people(path, categories.load(map_file), sex=sex, race=race, **further)
    if not any(p.sex and p.race for p in found):
        raise people.no_known(path, source)
    return record.from_people(found, source, settings, mode=mode)


def _from_counts(path: Path, settings: Settings, map_file: Path | None, published: str | None) -> dict[str, object]:
    from auditor.contrib.ll144 import categories, people, record

    settings.check()
    cells, mode, source = people.read_counts(path, categories.load(map_file), published=published)
    if not any(c.n and c.sex and c.race for c in cells):
        raise people.no_known(path, source)
    return record.from_counts(cells, source, settings, mode=mode)


def _from_rankings(path: Path, settings: Settings, leave_out: str | None, model: str | None) -> dict[str, object]:
    from auditor.contrib.ll144 import rankings, record

    return record.from_rankings(rankings.read(path, leave_out=leave_out, model=model), settings)


def _exclusions(given: Sequence[str]) -> dict[str, str]:
    from auditor.core.errors import ConfigError

    found: dict[str, str] = {}
    for text in given:
        category, _, reason = text.partition("=")
        if not category.strip() or not reason.strip():
            raise ConfigError(
                f'--exclude-below-2-percent needs "CATEGORY=JUSTIFICATION", as the published summary has to '
                f"carry the justification (6 RCNY 5-301(d)); got {text!r}"
            )
        found[category.strip()] = reason.strip()
    return found


def _date(option: str, text: str | None) -> datetime.date | None:
    from auditor.core.errors import ConfigError

    if text is None:
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{option} must be a date as YYYY-MM-DD; got {text!r}") from None


def _write_map(path: Path) -> int:
    from auditor.contrib.ll144.categories import DEFAULT
    from auditor.core.errors import ConfigError
    from auditor.store.files import write_bytes

    if path.exists():
        raise ConfigError(f"{path} exists already; give another file with --write-map.")
    write_bytes(path, DEFAULT.read_bytes())
    common.say(path, f"Next: edit it, then audit ll144 --map {common.quoted(path)} …")
    return 0


def _show(record: dict[str, object], format: str, out: Path | None, full: bool) -> int:
    from auditor.core.record import read
    from auditor.report import html, ll144_report, terminal
    from auditor.report.json import JsonReport
    from auditor.report.page import Page
    from auditor.store.files import write_bytes

    told = read(record)
    if out is not None:
        page = out.suffix == ".html"
        text = html.write(ll144_report.build(told), told) if page else JsonReport().render(record)
        write_bytes(out, text.encode("utf-8"))
        common.say(f"Report: {out}", to=sys.stderr)
    if format == "json":
        sys.stdout.write(JsonReport().render(record))
    else:
        sys.stdout.write(terminal.write(Page(**common.screen()), ll144_report.build(told), full=full))
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "ll144", argv)
