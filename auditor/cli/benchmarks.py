"""``audit import --benchmark NAME FILE…`` and ``audit --task NAME --data FILE``: published benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.cli import run_folders
from auditor.cli.screen import say, screen
from auditor.core.errors import ConfigError
from auditor.core.shown import plural

if TYPE_CHECKING:
    from auditor.contrib.benchmarks.benchmarked import Benchmarked
    from auditor.contrib.benchmarks.items import Item
    from auditor.core.plan import Plan


def recorded(
    benchmark: str, files: Sequence[Path], answer: str | None, *, delta: float | None, out: Path, format: str
) -> int:
    """Compute the scores of recorded answers."""
    from auditor.contrib.benchmarks import benchmarked, items

    read, sources = items.read(benchmark, files, answer)
    if all(item.chosen is None for item in read):
        raise ConfigError(
            f"no recorded answer was found in {', '.join(map(str, files))}: name their field with --answer, "
            f"or ask a model: audit --task {benchmark} --data {files[0]} --model SPEC"
        )
    made = benchmarked.compute(benchmark, read, sources, answer or "recorded answers", recorded=True, delta=delta)
    return _show(made, read, out, format)


def ask(plan: Plan, format: str, *, dry_run: bool, yes: bool) -> int:
    """Ask the models of ``plan`` about the items of the benchmark that its task names."""
    from auditor.contrib.benchmarks import asking, benchmarked, items
    from auditor.models.budget import Budget

    if plan.data is None:
        raise ConfigError(f"--task {plan.task} takes the published file: --data FILE (nothing of it is shipped)")
    if not plan.models:
        raise ConfigError(f"--task {plan.task} needs a model to ask: --model SPEC")
    read, sources = items.read(plan.task, [Path(plan.data)])
    models = asking.models_of(plan, read)
    drawn = asking.sample(read, plan, models)
    size = f"{plural(len(drawn), 'question')} of {len(read):,}, one call for each and each model."
    if len(drawn) < len(read) and plan.limit is None:
        size += " --full-plan asks all."
    if dry_run:
        say(f"{size} Nothing was asked.")
        return 0
    run_folders.agree(plan.models, limited=plan.limited, yes=yes, show=lambda: size)
    budget = Budget(**plan.limits)
    codes = []
    for spec, model in zip(plan.models, models, strict=True):
        answered, counts, reason = asking.ask(drawn, model, plan, budget)
        made = benchmarked.compute(
            plan.task, answered, sources, spec, recorded=False, answers=counts, reason=reason, delta=plan.delta
        )
        codes.append(_show(made, answered, Path(plan.out), format))
    return max(codes)


def _show(made: Benchmarked, items: Sequence[Item], out: Path, format: str) -> int:
    from auditor.contrib.benchmarks import benchmarked
    from auditor.report import terminal
    from auditor.report.page import Page

    text = made.to_json() if format == "json" else terminal.write(Page(**screen()), made.document(), full=True)
    sys.stdout.write(text)
    say(f"Report: {benchmarked.write(made, items, out) / benchmarked.PAGE}", to=sys.stderr)
    return 3 if made.reason else 0  # incomplete
