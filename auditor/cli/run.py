"""``audit [run]``: one audit from texts to report."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from auditor.cli import common
from auditor.cli.common import finish, invoke
from auditor.cli.options import takes
from auditor.cli.progress import Draw
from auditor.cli.spending import agree
from auditor.core.counting import plural, verb
from auditor.core.options import Group
from auditor.core.plan import Plan, resolve
from auditor.core.shown import inline

if TYPE_CHECKING:
    from auditor.core.record.rows import ExpectedJudge, ExpectedModel, ExpectedTexts

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


@app.command()
@takes("run", Plan)
def run(
    format: common.Format = "terminal",
    full: common.Full = False,
    config: common.Config = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            help="Run a frozen plan (audit plan freeze); flags given beside deviate.",
            rich_help_panel=Group.ASKED,
        ),
    ] = None,
    dry_run: common.DryRun = False,
    yes: common.Yes = False,
    **options: object,
) -> int:
    """Run an audit: ask a model the same thing about different people, measure whether the answer changes."""
    from auditor.run.result import audit_plan
    from auditor.run.result import dry_run as estimate

    common.check_format(format)
    common.with_waivers({})  # a slip in the file is told before anything is asked
    if plan is not None:
        return run_frozen(plan, options, format=format, full=full, dry_run=dry_run, yes=yes)
    chosen = resolve(options, config)
    draw = Draw()
    if dry_run:
        sys.stdout.write(_show_estimate(estimate(chosen, observe=draw), format) + "\n")
        return 0
    consent(chosen, yes=yes)
    return finish(audit_plan(chosen, observe=draw), format=format, fail_on=chosen.fail_on, full=full)


def run_frozen(
    path: Path,
    flags: Mapping[str, object],
    *,
    format: str = "terminal",
    full: bool = False,
    dry_run: bool = False,
    yes: bool = True,
) -> int:
    """Run a frozen plan and return the exit code.

    Parameters
    ----------
    path : Path
        The frozen plan.
    flags : mapping
        Further flags as fields of `Plan`; one that changes the plan is recorded as a deviation.
    format : str
        ``terminal`` or ``json``.
    full : bool
        As ``--full``.
    dry_run : bool
        Say what would be asked, and call nothing.
    yes : bool
        Do not ask before money is spent.
    """
    from auditor import run as pipeline
    from auditor.run import freeze, result

    common.check_format(format)
    frozen = freeze.load(path)
    plan = freeze.with_flags(frozen, flags)
    if dry_run:
        sys.stdout.write(_show_estimate(result.dry_run(plan, observe=Draw()), format) + "\n")
        return 0
    consent(plan, yes=yes)

    parts = pipeline.prepare(plan)
    about = freeze.reference(frozen, pipeline.plan_record(parts))
    for row in about["deviations"]:
        common.say(f"deviation from the frozen plan: {row['what']}", to=sys.stderr)
    done = result.in_folder(parts, observe=Draw(), further={"frozen": about})
    return finish(done, format=format, fail_on=plan.fail_on, full=full)


def consent(plan: Plan, *, yes: bool) -> None:
    """Ask before ``plan`` spends money (`auditor.cli.spending`)."""
    from auditor import run as pipeline
    from auditor.run.result import dry_run

    agree(
        [*plan.models, plan.judge],
        limited=plan.limited,
        yes=yes,
        check=lambda: pipeline.prepare(plan),
        show=lambda: _show_estimate(dry_run(plan, observe=Draw()), "terminal"),
    )


def _show_estimate(told: ExpectedTexts, format: str) -> str:
    import msgspec

    from auditor.report.planned import reached

    if format == "json":
        return msgspec.json.format(msgspec.json.encode(told, order="sorted"), indent=2).decode()
    lines = [f"Seeds with people-terms  {told.taken:,} of {told.seeds:,}"]
    if any(carrier != "words" for by in told.carried.values() for carrier in by):
        lines += [
            f"{f'Texts about {attribute}':<25}{', '.join(f'{n:,} by {c}' for c, n in sorted(by.items()))}"
            for attribute, by in told.carried.items()
        ]
    lines += [
        f"Variants                 {told.variants:,} ({told.valid:,} valid, {told.discarded:,} discarded)",
        f"Placebo variants         {told.placebos:,} ({told.placebos_valid:,} valid)",
    ]
    if told.wordings:
        lines.append(f"Further wordings         {told.wordings:,} ({told.wordings_valid:,} valid)")
    if told.not_english:
        lines.append(f"Not English, it seems    {told.not_english:,} texts")
    lines += [
        "",
        f"{'model':<34}{'prompts':>10}{'replicates':>12}{'calls':>10}"
        f"{'tokens in':>12}{'tokens out':>12}{'cost USD':>12}",
    ]
    for name, row in told.models.items():
        lines.append(f"{name[:33]:<34}{row.prompts:>10,}{row.replicates:>12}{_spent(row)}")
    if judge := told.judge:
        lines.append(f"{'judge ' + judge.model[:24] + ', at most':<34}{'':>22}{_spent(judge)}")
    lines += ["", *filter(None, [told.left_out]), *reached(told.power)]
    if n := told.canaries:
        lines.append(
            f"{plural(n, 'further call')} {verb(n, 'repeats', 'repeat')} the first prompts, to see whether the model "
            "stays the same."
        )
    lines += ["", "Tokens are estimates (characters / 3.5); cached answers would cost nothing. Nothing was asked."]
    return "\n".join(map(inline, lines))


def _spent(row: ExpectedModel | ExpectedJudge) -> str:
    cost = "unknown" if row.cost_usd is None else f"{row.cost_usd:.2f}"
    return f"{row.calls:>10,}{row.tokens_in:>12,}{row.tokens_out:>12,}{cost:>12}"


def command(argv: list[str]) -> int:
    """Run the command and return its exit code."""
    return invoke(app, "run", argv)
