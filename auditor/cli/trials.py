"""``audit mitigate``, ``augment`` and ``choose``: changed prompts, texts to train with, which of several people."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, astuple, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from auditor.cli import frame, run_folders
from auditor.cli.frame import Draw, option, put, say, takes
from auditor.cli.run_folders import agree, find_run, find_text_run
from auditor.core.options import MOST_TIMES
from auditor.core.plan import Plan, resolve
from auditor.core.record import Counts
from auditor.core.shown import plural, quoted, verb
from auditor.core.types import names
from auditor.report.words import cost, visible
from auditor.store.folder import RunFolder
from auditor.store.integrity import require_intact
from auditor.store.journal import write_json

if TYPE_CHECKING:
    from auditor.run.choose import Compared
    from auditor.run.mitigate import Prepared


@takes("mitigate", Plan)
@frame.argument("run", "RUN", "A finished run: a folder, its name, or latest.")
@frame.flag(
    "--with", "with_", help="ignore (an instruction), redact (blinding), with commas (default: all that can be)."
)
@frame.file(
    "--prompt",
    multiple=True,
    help="A prompt of yours: a text for the end of the system prompt, or a task file with the same answers; may be "
    "repeated. Without --with it is tried alone.",
)
@frame.flag("--other-model", multiple=True, help="Another model under the same prompt; may be repeated.")
@option("replicates", default=1, help="Times each prompt is asked (default 1).")
@frame.page
@frame.dry_run
@run_folders.address
@run_folders.yes
def mitigate(
    *,
    run: Path,
    with_: str | None,
    prompt: tuple[Path, ...],
    other_model: tuple[str, ...],
    replicates: int,
    format: str,
    dry_run: bool,
    base_url: str | None,
    yes: bool,
    **limits: object,
) -> int:
    """Ask the texts of RUN under changed prompts, and compare differences, accuracy and cost."""
    from auditor.run import mitigate as trying

    path = find_text_run(run, "mitigate")
    limits = dict(limits)
    root = Path(str(limits.pop("out", None) or path.parent))
    built_in = names(with_) if with_ is not None else () if prompt or other_model else None
    prompts = dict.fromkeys(map(str, prompt), "")
    asked = trying.Asked(built_in=built_in, prompts=prompts, models=other_model, limits=limits, replicates=replicates)
    named = replace(run_folders.Named.of(RunFolder.open(path).plan.get("plan") or {}), unlimited=())  # asked below
    named.consent(path, again=f"mitigate {quoted(path)}", yes=yes, named=None, base_url=base_url)
    prepared = trying.prepare_trial(path, asked)
    _tell(prepared)
    size = f"{plural(len(prepared.arms), 'prompt')}, {plural(len(prepared.cases), 'case')}"
    size += f", at most {prepared.calls:,} calls"
    if dry_run:
        say(f"{size}. Nothing was asked.", *prepared.notes)
        return 0
    agree([*prepared.plan.models, *other_model], limited=prepared.plan.limited, yes=yes, show=lambda: size)
    return _try_out(prepared, root / f"{path.name}-mitigated-{datetime.now(UTC):%Y%m%d-%H%M%S}", format)


def resume_trial(folder: Path, limits: Mapping[str, object], consent: run_folders.Consent, format: str) -> int:
    """Go on with the trial in ``folder``."""
    from auditor.run import mitigate as trying

    trial = trying.again(folder)
    path = folder / trial.run
    require_intact(path)
    limits = {**trial.limits, **limits}
    plan = RunFolder.open(path).plan.get("plan") or {}
    consent({**plan, "max_calls": None, "max_cost": None, **limits}, *trial.models)
    prepared = trying.prepare_trial(path, msgspec.structs.replace(trial, limits=limits))
    _tell(prepared)
    return _try_out(prepared, folder, format)


def _tell(prepared: Prepared) -> None:
    from auditor.run.preparation import tell_proxies

    tell_proxies({m.name: m for _, parts in prepared.arms for m in parts.models}.values(), Draw())


def _try_out(prepared: Prepared, folder: Path, format: str) -> int:
    """Ask, in ``folder``, print what it came to, and write its page."""
    from auditor.report import html, studies
    from auditor.run import mitigate as trying

    say(f"Folder: {folder}", to=sys.stderr)
    trial = trying.try_out(prepared, folder, Draw())
    document = studies.mitigated(
        f"Changed prompts on {trial.run}",
        f"{trial.model}, {plural(trial.texts, 'text')}.",
        trial.found,
        [
            (
                s.mitigation, s.what, f"{s.answers:,}", f"{s.calls:,}", f"{s.unread:,}", f"{s.tokens_in:,}",
                f"{s.tokens_out:,}", cost(Counts(cost_usd=s.cost_usd, reserved_usd=s.reserved_usd)) or "–", s.run,
            )
            for s in trial.spent
        ],
        trial.notes,
    )  # fmt: skip
    values = asdict(trial) | {"helps": trial.found.helps()}
    write_json(folder / "mitigation.json", values)
    (folder / "mitigation.html").write_text(html.write(document), encoding="utf-8")
    put(values, format, document)
    say(f"Report: {folder / 'mitigation.html'}", to=sys.stderr)
    if all(s.complete for s in trial.spent):
        return 0
    say(f"Go on with: audit resume {quoted(folder)}", to=sys.stderr)
    return 3


@frame.run_argument
@frame.out(required=True, help="Where the rows go: .jsonl, or .csv.")
@frame.flag("--top", type=int, help="Only cases with one of the N words with the highest rates (published: 5, 10).")
@frame.flag("--share", type=float, help="Rows in percent of the training data (published: 0.25 to 10).")
@frame.flag("--train-rows", type=int, help="Rows of the training data; with --share.")
@option("models", "model", multiple=False, help="Model whose violations are used (default: the first of the run).")
@option("seed", default=7)
def augment(
    *, run: Path, out: Path, top: int | None, share: float | None, train_rows: int | None, model: str | None, seed: int
) -> int:
    """Write texts whose answer changed in RUN, with the label that both sides should get."""
    from auditor.run.augment import FIELDS, write_rows
    from auditor.run.augment import augment as collect
    from auditor.tables.retraining import augment_rows, described

    path = find_run(run)
    if RunFolder.open(path).plan.get("kind") == "tabular":
        require_intact(path)
        table = augment_rows(path, share=share, train_rows=train_rows, seed=seed)
        write_rows(table.columns, table.rows, out)
        say(*described(table, out))
        return 0
    path = find_text_run(path, "augment")
    with RunFolder.open(path) as folder:
        folder.require_texts("writing training texts")
        texts = collect(folder, top=top, share=share, train_rows=train_rows, model=model, seed=seed)
    write_rows(FIELDS, map(astuple, texts.rows), out)
    lines = [f"{out}: {len(texts.rows)} of {plural(texts.available, 'text')} from the violations of {texts.model}"]
    if texts.tokens:
        lines.append(f"words: {', '.join(map(visible, texts.tokens))}")
    if texts.wanted is not None and texts.wanted > texts.available:
        lines.append(f"{texts.wanted} were asked for; a longer run (--limit) finds more violations to draw from.")
    by_model = sum(row.label_source == "model" for row in texts.rows)
    if by_model:
        lines.append(
            f"{by_model} labels are the model's own answers to the originals: look through them before training."
        )
    lines += [f"left out, {why}: {n}" for why, n in texts.dropped.items()]
    say(*lines)
    return 0


@takes("choose", Plan)
@frame.flag("--candidates", default=2, help="2: which of two, in both orders (default); 3 to 10: rank them.")
@frame.flag(
    "--repeats",
    default=1,
    type=click.IntRange(1, MOST_TIMES),
    help="Times each order of a pair is asked; or rankings of a text (at least as many as places).",
)
@frame.page
@frame.config
@frame.yes
def choose(*, candidates: int, repeats: int, format: str, config: Path | None, yes: bool, **options: object) -> int:
    """Show candidates who differ in nothing but who they are side by side, and measure who is chosen."""
    from auditor.run import choose as asking
    from auditor.run.choose import task_of

    plan = resolve(options, config)
    task_of(plan.task, candidates)  # a slip is told before the question
    agree(
        plan.models,
        limited=plan.limited,
        yes=yes,
        limits="--max-calls N, or --max-cost USD",
        show=lambda: "Two calls for each pair of versions, or one for each ranking; set a limit to be sure.",
    )
    return _show(plan.task, asking.compare(plan, candidates, repeats, Draw()), format)


def resume_panels(path: Path, limits: Mapping[str, object], format: str) -> int:
    """Go on with the panels in ``path``."""
    from auditor.run.choose import resume

    plan, done = resume(path, dict(limits), Draw())
    return _show(plan.task, done, format)


def _show(task: str, done: Compared, format: str) -> int:
    """Print what a run of panels came to, and write its page."""
    from auditor.report import html, studies

    document = studies.choices(
        f"{task}: {'which of two' if done.kind == 'choice' else 'rankings'}",
        done.kind,
        " ".join((f"{plural(done.texts, 'text')}.", *(_said(done, name) for name in done.seen))),
        done.claims,
        {m: {g: s.ranks[g] / n for g, n in s.of.items()} for m, s in done.seen.items()},
        done.impact,
    )
    (done.path / "report.html").write_text(html.write(document), encoding="utf-8")
    put({**RunFolder.open(done.path).record()}, format, document)
    say(f"Report: {done.path / 'report.html'}", to=sys.stderr)
    if done.reason:
        say(f"Incomplete: {done.reason}. Go on with: audit resume {quoted(done.path)}", to=sys.stderr)
    return 3 if done.reason else 0


def _said(done: Compared, model: str) -> str:
    from auditor.run.choose import TIE

    seen = done.seen[model]
    lost = seen.answers.total() - seen.answers["ok"]
    position = seen.position
    parts = [f"{model}: {seen.answers.total():,} answers, {lost:,} of them refused or not readable"]
    if seen.not_asked:
        parts.append(f"{plural(seen.not_asked, 'question')} {verb(seen.not_asked, 'was', 'were')} not asked")
    if position is not None:
        parts.append(
            f"the first place is taken {100 * position:+.0f} points more often than the last".replace("-", "−")
        )
    if done.kind == "choice":
        parts.append(f"{seen.chosen[TIE]:,} ties")
    return "; ".join(parts) + "."
