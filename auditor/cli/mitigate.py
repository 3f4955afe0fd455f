"""``audit mitigate RUN``: the texts of a run under changed prompts."""

from __future__ import annotations

import dataclasses
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import common, consent, pages
from auditor.cli.common import invoke
from auditor.cli.options import option, takes
from auditor.cli.progress import Draw
from auditor.core.counting import plural
from auditor.core.plan import Plan
from auditor.core.types import names

if TYPE_CHECKING:
    from auditor.run.mitigate import Prepared

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
TABLES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".gz", ".zip")


@app.command()
@takes("mitigate", Plan)
def mitigate(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="A finished run: a folder, its name, or latest; or a table of recorded answers."
        ),
    ],
    with_: Annotated[
        str | None,
        typer.Option(
            "--with", help="ignore, redact, rubric, reasoning, few-shot, with commas (default: all that can be tried)."
        ),
    ] = None,
    prompt: Annotated[
        list[Path] | None,
        typer.Option(
            "--prompt",
            help="A prompt of yours: a text for the end of the system prompt, or a task file with the same answers; "
            "may be repeated. Without --with it is tried alone.",
        ),
    ] = None,
    other_model: Annotated[
        list[str] | None, typer.Option("--other-model", help="Another model under the same prompt; may be repeated.")
    ] = None,
    replicates: Annotated[int, option("replicates", help="Times each prompt is asked.")] = 1,
    map: Annotated[
        Path | None,
        typer.Option("--map", help="Of a table: what each column says (import.toml); its `format` names the prompt."),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", help="Of a table: the prompt that the others are compared with.")
    ] = None,
    format: pages.Format = "terminal",
    dry_run: common.DryRun = False,
    base_url: consent.Address = None,
    yes: consent.Yes = False,
    **limits: object,
) -> int:
    """Ask the texts of RUN under changed prompts, and say what each does: differences, accuracy, cost."""
    from auditor.run import mitigate as trying
    from auditor.store.folder import RunFolder

    format = pages.checked(format)
    if run.suffix.lower() in TABLES and run.is_file():
        return recorded(run, map, base, format)
    path = common.find_text_run(run, "mitigate")
    limits = dict(limits)
    root = Path(str(limits.pop("out", None) or path.parent))
    built_in = names(with_) if with_ is not None else () if prompt or other_model else None
    wanted = trying.Wanted(built_in=built_in, prompts=tuple(prompt or ()), models=tuple(other_model or ()))
    named = consent.Named.of_texts(RunFolder.open(path).plan.get("plan") or {})
    named.consent(path, again=f"mitigate {common.quoted(path)}", yes=yes, given=None, base_url=base_url)
    prepared = trying.prepare_trial(path, wanted, limits, replicates)
    told = f"{plural(len(prepared.arms), 'prompt')}, {plural(len(prepared.cases), 'case')}"
    told += f", at most {prepared.calls:,} calls"
    if dry_run:
        common.say(f"{told}. Nothing was asked.", *prepared.notes)
        return 0
    from auditor.cli.spending import agree

    agree(
        [*prepared.plan.models, *wanted.models],
        limited=prepared.plan.limited,
        yes=yes,
        check=lambda: None,
        show=lambda: told,
    )
    return finish(prepared, root / f"{path.name}-mitigated-{datetime.now(UTC):%Y%m%d-%H%M%S}", format)


def resume(folder: Path, limits: dict[str, object], consented: consent.Given, format: str) -> int:
    """Go on with the trial in ``folder``."""
    from auditor.run import mitigate as trying
    from auditor.store.folder import RunFolder
    from auditor.store.verify import require_intact

    told = trying.again(folder)
    path, wanted = folder / told.run, told.wanted
    require_intact(path)
    plan = RunFolder.open(path).plan.get("plan") or {}
    named = consent.Named.of([*(plan.get("models") or ()), *wanted.models], [plan.get("base_url")])
    named.consent(folder, again=f"resume {common.quoted(folder)}", **consented)
    given = {name: value for name, value in limits.items() if value is not None}
    return finish(trying.prepare_trial(path, wanted, told.limits | given, told.replicates, told.most), folder, format)


def finish(prepared: Prepared, folder: Path, format: str) -> int:
    """Ask, in ``folder``, print what it came to, and write its page."""
    from auditor.report import html, mitigated
    from auditor.run import mitigate as trying
    from auditor.store.files import write_json

    common.say(f"Folder: {folder}", to=sys.stderr)
    trial = trying.try_out(prepared, folder, Draw())
    document = mitigated.build(
        f"Changed prompts on {trial.run}",
        f"{trial.model}, {plural(trial.texts, 'text')}.",
        trial.found,
        [
            (
                s.mitigation, s.what, f"{s.answers:,}", f"{s.calls:,}", f"{s.unread:,}", f"{s.tokens_in:,}",
                f"{s.tokens_out:,}", f"{s.cost_usd:.2f}" if s.cost_usd else "–", s.run,
            )
            for s in trial.spent
        ],
        trial.notes,
    )  # fmt: skip
    values = dataclasses.asdict(trial) | {"helps": trial.found.helps()}
    write_json(folder / "mitigation.json", values)
    (folder / "mitigation.html").write_text(html.write(document), encoding="utf-8")
    pages.put(values, format, document)
    common.say(f"Report: {folder / 'mitigation.html'}", to=sys.stderr)
    if all(s.complete for s in trial.spent):
        return 0
    common.say(f"Go on with: audit resume {common.quoted(folder)}", to=sys.stderr)
    return 3


def recorded(file: Path, map: Path | None, base: str | None, format: str) -> int:
    """Compare the prompts of a table of recorded answers; nothing is asked."""
    from auditor.contrib.imports import mapping, observe, tables
    from auditor.core.errors import ConfigError
    from auditor.measure import mitigation
    from auditor.report import mitigated

    if map is None or base is None:
        raise ConfigError(
            "A table of answers needs --map FILE (audit import FILE --write-map FILE; its `format` names the column of "
            "the prompt) and --base NAME, the prompt that the others are compared with."
        )
    imported = observe.observe(tables.read([file]), mapping.load(map))
    prompts = imported.table.formats.values
    if base not in prompts or len(prompts) < 2:
        raise ConfigError(f"--base {base!r}: the prompts in {file} are {', '.join(prompts)}.")
    texts = imported.table.texts.values
    golds = {texts[code]: label for code, label in imported.table.golds.items()}
    found = mitigation.compare(imported.table, imported.question, base, golds)
    document = mitigated.build(f"Prompts in {file.name}", f"{plural(len(texts), 'text')}.", found)
    pages.put(dataclasses.asdict(found) | {"helps": found.helps()}, format, document)
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "mitigate", argv)
