"""``audit ll144``: the tables of New York City Local Law 144 from recorded outcomes."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import frame
from auditor.cli.common import must_be_new, say_where
from auditor.cli.frame import option
from auditor.cli.screen import say, screen
from auditor.core.errors import ConfigError
from auditor.core.shown import quoted

if TYPE_CHECKING:
    from auditor.contrib.ll144.record import Settings

Text = str | None
FilePath = Path | None


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
    format: frame.Format = "terminal",
    full: frame.Full = False,
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
    from auditor.contrib.ll144 import rankings as ranked
    from auditor.contrib.ll144 import record as making
    from auditor.run import outcomes

    if write_map is not None:
        return _write_map(write_map)
    if sum(f is not None for f in (data, counts, rankings)) != 1:
        raise ConfigError("give one of --data FILE, --counts FILE and --rankings FILE. See: audit ll144 --help")
    if out is not None and out.suffix and out.suffix not in (".html", ".json") and not out.is_dir():
        raise ConfigError(f"--out writes a .html or a .json file, or run folders below a folder; got {out}")
    if data_kind is None and rankings is None:
        data_kind = _ask_kind()
    started = datetime.datetime.now(datetime.UTC)
    settings = making.Settings(
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
    columns = {"sex": sex, "race": race, "ethnicity": ethnicity, "selected": selected, "score": score, "group": group}
    beside = {"leave_out": leave_out, "model": model}
    if data is None:
        _refuse(columns, "--data")
        _refuse({"unknown_in_median": unknown_in_median}, "--data")
    if counts is None and (data is not None or rankings is not None):
        _refuse({"published": published}, "--counts")
    if rankings is None:
        _refuse(beside, "--rankings")
    if data is not None:
        record = _from_data(data, columns, settings, map_file)
    elif counts is not None:
        record = _from_counts(counts, settings, map_file, published)
    else:
        of_audits = (exclude, partly_known, map_file, audit_date, distribution_date)
        if any((*of_audits, data_kind, test_data_reason, test_data_generation)):
            raise ConfigError(
                "--rankings takes --source, --leave-out, --model, --format and --out only: rankings of made-up "
                "applicants are test data"
            )
        read = ranked.read(Path(str(rankings)), leave_out=leave_out, model=model)
        record = making.from_rankings(read, settings)
    if out is None or out.suffix in (".html", ".json"):
        return _show(record, format, out, full)
    options = columns | {"map": str(map_file) if map_file else None} | beside | {"published": published}
    plan = {
        "data": str(data or counts or rankings),
        "options": {k: v for k, v in options.items() if v is not None},
        "settings": {k: str(v) if isinstance(v, datetime.date) else v for k, v in asdict(settings).items()},
        "out": str(out),
    }
    say_where(outcomes.write(record, plan, out, started=started))
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


def _refuse(options: Mapping[str, object], needed: str) -> None:
    """Refuse options that were given although they go with an input of another kind."""
    flags = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if flags:
        raise ConfigError(f"{', '.join(flags)}: only with {needed} FILE")


def _from_data(
    path: Path, columns: Mapping[str, str | None], settings: Settings, map_file: Path | None
) -> dict[str, object]:
    from auditor.contrib.ll144 import categories, people, record

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
    rows, source = people.read_people(path, categories.load(map_file), sex=sex, race=race, **further)
    if not any(p.sex and p.race for p in rows):
        raise people.no_known(path, source)
    return record.from_people(rows, source, settings, mode=mode)


def _from_counts(path: Path, settings: Settings, map_file: Path | None, published: str | None) -> dict[str, object]:
    from auditor.contrib.ll144 import categories, people, record

    settings.check()
    cells, mode, source = people.read_counts(path, categories.load(map_file), published=published)
    if not any(c.n and c.sex and c.race for c in cells):
        raise people.no_known(path, source)
    return record.from_counts(cells, source, settings, mode=mode)


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


def _date(flag: str, text: str | None) -> datetime.date | None:
    try:
        return None if text is None else datetime.date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{flag} must be a date as YYYY-MM-DD; got {text!r}") from None


def _write_map(path: Path) -> int:
    from auditor.contrib.ll144.categories import DEFAULT
    from auditor.store.disk import write_bytes

    must_be_new(path, "exists already; give another file with --write-map.")
    write_bytes(path, DEFAULT.read_bytes())
    say(path, f"Next: edit it, then audit ll144 --map {quoted(path)} …")
    return 0


def _show(record: dict[str, object], format: str, out: Path | None, full: bool) -> int:
    from auditor.core.record import read
    from auditor.report import html, ll144_report, terminal
    from auditor.report.page import Page
    from auditor.report.run_json import JsonReport
    from auditor.store.disk import write_bytes

    typed = read(record)
    if out is not None:
        page = out.suffix == ".html"
        text = html.write(ll144_report.build(typed), typed) if page else JsonReport().render(record)
        write_bytes(out, text.encode("utf-8"))
        say(f"Report: {out}", to=sys.stderr)
    if format == "json":
        sys.stdout.write(JsonReport().render(record))
    else:
        sys.stdout.write(terminal.write(Page(**screen()), ll144_report.build(typed), full=full))
    return 0
