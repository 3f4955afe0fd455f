"""``audit run``, ``generate`` and ``resume``: one audit from texts to report."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from auditor.cli import frame, run_folders
from auditor.cli.frame import Draw, complain, fitted, say, takes
from auditor.cli.run_folders import find_run, finish, with_waivers
from auditor.contrib.benchmarks import NAMES as BENCHMARKS
from auditor.core.errors import ConfigError
from auditor.core.options import Group
from auditor.core.plan import SUITES, Plan, resolve
from auditor.core.shown import inline, plural, quoted, verb

if TYPE_CHECKING:
    from auditor.core.record.rows import ExpectedJudge, ExpectedModel, ExpectedTexts
    from auditor.run.dryrun import Ahead


@takes("run", Plan)
@frame.printed
@frame.full
@frame.config
@frame.file("--plan", help="Run a frozen plan (audit plan freeze); other flags count as deviations.", group=Group.ASKED)
@frame.dry_run
@frame.yes
def run(
    *, format: str, full: bool, config: Path | None, plan: Path | None, dry_run: bool, yes: bool, **options: object
) -> int:
    """Run an audit: ask a model the same thing about different people, measure whether the answer changes."""
    from auditor.core.record import RunRecord
    from auditor.run import freeze
    from auditor.run.audit import in_folder, plan_record
    from auditor.run.dryrun import Ahead, tell_left_out
    from auditor.run.preparation import prepare

    with_waivers(RunRecord())  # a slip in the file is told before anything is asked
    frozen = None if plan is None else freeze.load(plan)
    if frozen and options.get("full_plan"):
        raise ConfigError("--full-plan belongs to audit plan freeze: a frozen plan says what is asked.")
    chosen = resolve(options, config) if frozen is None else freeze.with_flags(frozen, options)
    if chosen.task in BENCHMARKS:
        from auditor.cli.imports import ask

        return ask(chosen, format, dry_run=dry_run, yes=yes)
    _spare_memory(chosen)
    if dry_run:
        return _outlook(chosen, format)
    made = Ahead(prepare(chosen))
    agreed(made, chosen, yes=yes)
    parts = made.narrowed.parts if frozen is None else made.parts
    further = {} if frozen is None else freeze.tell_deviations(frozen, plan_record(parts), Draw())
    tell_left_out(parts, Draw())
    done = in_folder(parts, observe=Draw(), further=further)
    return finish(done, format=format, fail_on=chosen.fail_on, full=full)


def _spare_memory(plan: Plan) -> None:
    """Keep PyTorch out of spaCy, unless code runs in this process that may use both."""
    from auditor.text.parse import without_torch

    foreign = ("python:", "langchain:")
    ours = plan.suite in SUITES and plan.parser == "embedded"
    if ours and not any(spec.startswith(foreign) for spec in (*plan.models, *plan.judge)):
        without_torch()


def agreed(made: Ahead, plan: Plan, *, yes: bool) -> None:
    """Ask before ``plan``, as it was given, spends money (`auditor.cli.run_folders`)."""
    from auditor.run.dryrun import cheap_said

    run_folders.agree(
        [*plan.models, plan.judged_by],
        limited=plan.limited,
        yes=yes,
        show=lambda: _expected(made.narrowed.expected()),
        default=cheap_said(made.parts),
    )


def _outlook(plan: Plan, format: str) -> int:
    """Print what ``plan`` would ask; ask nothing."""
    from auditor.run.dryrun import dry_run

    expected = dry_run(plan, observe=Draw())
    if format == "json":
        text = msgspec.json.format(msgspec.json.encode(expected, order="sorted"), indent=2).decode()
    else:
        text = _expected(expected)
    sys.stdout.write(text + "\n")
    return 0


def _expected(plan: ExpectedTexts) -> str:
    from auditor.report.run_checks import reached

    lines = [f"Seeds with people-terms  {plan.taken:,} of {plan.seeds:,}"]
    if any(carrier != "words" for by in plan.carried.values() for carrier in by):
        lines += [
            f"{f'Texts about {attribute}':<25}{', '.join(f'{n:,} by {c}' for c, n in sorted(by.items()))}"
            for attribute, by in plan.carried.items()
        ]
    lines += [
        f"Variants                 {plan.variants:,} ({plan.valid:,} valid, {plan.discarded:,} discarded)",
        f"Placebo variants         {plan.placebos:,} ({plan.placebos_valid:,} valid)",
    ]
    if plan.wordings:
        lines.append(f"Further wordings         {plan.wordings:,} ({plan.wordings_valid:,} valid)")
    if plan.languages:
        from auditor.text.languages import title

        spoken = ", ".join(f"{n:,} {title(code)}" for code, n in plan.languages.items())
        lines.append(f"Languages of the texts   {spoken}")
    lines += [
        "",
        f"{'model':<20}{'prompts':>9}{'replicates':>11}{'calls':>8}{'tokens in':>11}{'tokens out':>11}{'cost USD':>10}",
    ]
    for name, row in plan.models.items():
        lines += [name] if len(name) > 19 else []
        lines.append(f"{name if len(name) < 20 else '':<20}{row.prompts:>9,}{row.replicates:>11}{_spent(row)}")
    if judge := plan.judge:
        lines += [f"judge {judge.model}, at most", f"{'':<40}{_spent(judge)}"]
    lines += ["", *filter(None, [plan.left_out]), *reached(plan.power)]
    if plan.calls_whole:
        lines.append(f"{plan.limit} ends the run there; the whole plan has {plan.calls_whole:,} calls.")
    if n := plan.canaries:
        lines.append(
            f"{plural(n, 'further call')} {verb(n, 'repeats', 'repeat')} the first prompts, to see whether the model "
            "stays the same."
        )
    if plan.sampled:
        lines.append(f"Estimated from a sample of {plan.sampled:,} of {plural(plan.seeds, 'text')}.")
    lines += ["", "Tokens are estimates (characters / 3.5); cached answers would cost nothing. Nothing was asked."]
    return "\n".join(fitted(inline(line)) for line in lines)


def _spent(row: ExpectedModel | ExpectedJudge) -> str:
    cost = "unknown" if row.cost_usd is None else f"{row.cost_usd:.2f}"
    return f"{row.calls:>8,}{row.tokens_in:>11,}{row.tokens_out:>11,}{cost:>10}"


@takes("generate", Plan)
@frame.printed
@frame.config
def generate(*, format: str, config: Path | None, **options: object) -> int:
    """Write cases and prompts to a run folder, to be answered by any gateway and judged with `audit import`."""
    from auditor.run.audit import generate as make

    path = make(resolve(options, config), observe=Draw())
    counts = _counts(path)
    if format == "json":
        sys.stdout.write(json.dumps({"run": str(path), **counts}) + "\n")
        return 0
    say(
        path,
        f"  {', '.join(f'{n:,} {name}' for name, n in counts.items())}",
        "  cases.jsonl    originals and variants, discarded ones with the reason",
        '  prompts.jsonl  what to ask; answer each line as {"prompt_sha256": …, "replicate": 0, "output": …}',
        f"Then: audit import --generated {quoted(path)} FILE",
    )
    return 0


def _counts(path: Path) -> dict[str, int]:
    """Texts, variants, and those that the check of variants keeps; placebos and further wordings apart."""
    from auditor.core.types import text_of
    from auditor.run.state import sizes
    from auditor.store.folder import RunFolder

    texts: set[str] = set()
    counts: Counter[str] = Counter()
    for case, checks in RunFolder.open(path).cases():
        texts.add(text_of(case.id))
        counts += sizes(case.variants, checks)
    names = {"variants": "variants", "valid": "valid", "placebos": "placebos_valid"}
    return {"texts": len(texts)} | {shown: counts[name] for shown, name in names.items()}


@takes("resume", Plan)
@frame.run_argument
@frame.printed
@frame.full
@frame.fail_on
@run_folders.models
@run_folders.address
@run_folders.yes
def resume(
    *,
    run: Path,
    format: str,
    full: bool,
    fail_on: str | None,
    model: tuple[str, ...],
    base_url: str | None,
    yes: bool,
    **limits: object,
) -> int:
    """Finish RUN; what was answered is not asked again. New limits may be given; they are for the whole run."""
    from auditor.agent.session import SESSION
    from auditor.cli import agent, trials
    from auditor.run.audit import load, settle
    from auditor.run.audit import resume as go
    from auditor.run.mitigate import TRIAL
    from auditor.store.folder import RunFolder
    from auditor.store.integrity import require_intact

    path = find_run(run, begun=("plan.json", TRIAL, SESSION))

    def consent(plan: Mapping[str, object], *more: str) -> None:
        named = run_folders.Named.of(plan, *more)
        named.consent(path, again=f"resume {quoted(path)}", yes=yes, named=model, base_url=base_url)

    if (path / SESSION).is_file():
        return agent.resume_session(path, limits, consent, format, full=full)
    if (path / TRIAL).is_file():
        return trials.resume_trial(path, limits, consent, format)
    folder = RunFolder.open(path)
    require_intact(path)
    if folder.plan.get("kind") == "tabular":
        from auditor.tables import resume_table

        ours = {name: value for name, value in limits.items() if name != "anyway"}  # rows have no control
        consent(folder.plan | ours)
        table = resume_table(path, observe=Draw(), limits=ours)
        return finish(table, format=format, fail_on=fail_on, full=full)
    panels = "panels" in folder.plan
    if (path / "run.json").is_file() and folder.record().get("status") == "complete":
        complain(f"Nothing was left to ask: {path} is complete.")
        if panels:
            return 0
        result = load(path) if (path / "report.html").is_file() else settle(folder)
        return finish(result, format=format, fail_on=fail_on, full=full)
    consent((folder.plan.get("plan") or {}) | limits)
    if panels:
        return trials.resume_panels(path, limits, format)
    return finish(go(path, observe=Draw(), limits=limits), format=format, fail_on=fail_on, full=full)
