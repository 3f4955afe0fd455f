"""Retraining data (ASTRAEA, §7, RQ3 and RQ4): texts whose answer changed, both sides with one label."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random

from auditor.core.errors import ConfigError, UnknownPlugin, UserError
from auditor.core.record import RunRecord
from auditor.core.shown import csv_text
from auditor.core.types import Case, Verdict
from auditor.store.folder import RunFolder
from auditor.tasks import Task, load


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One text to train on."""

    text: str
    label: str
    label_source: str  # "data": of the texts or the grammar; "model": its answer to the original
    case: str
    variant: str
    tokens: tuple[str, ...]  # the chosen words that the case holds


FIELDS = tuple(field.name for field in fields(Row))


@dataclass(frozen=True, kw_only=True, slots=True)
class Augmentation:
    """The rows, and what they are."""

    rows: tuple[Row, ...]
    model: str
    tokens: tuple[str, ...]
    wanted: int | None  # None: all
    available: int
    dropped: Mapping[str, int]


def top_tokens(record: RunRecord, model: str, top: int) -> tuple[str, ...]:
    """The ``top`` words with the highest error rates of ``model``: those that name a group, if any has errors."""
    rows = [t for s in record.tokens if s.model == model for t in s.tokens if t.errors]
    named = [t for t in rows if t.group] or rows
    # By the lower limit, so that a word seen three times is not ahead by chance.
    ranked = sorted(named, key=lambda t: (-t.low, -t.rate, t.token))
    return tuple(dict.fromkeys(t.token for t in ranked))[:top]


def augment(
    folder: RunFolder,
    *,
    top: int | None = None,
    share: float | None = None,
    train_rows: int | None = None,
    model: str | None = None,
    seed: int = 7,
) -> Augmentation:
    """Collect retraining rows from a run folder: of cases with one of the ``top`` words, or a ``share``."""
    wanted = share_of(share, train_rows)
    if top is not None and top < 1:
        raise ConfigError(f"--top must be 1 or more; got {top}")
    record = folder.run()
    names = list(record.spec.models)
    if model is not None and model not in names:
        raise UnknownPlugin("model", model, names)
    chosen = model or names[0]
    tokens = () if top is None else top_tokens(record, chosen, top)
    if top is not None and not tokens:
        raise UserError(f"{record.id}: no word of {chosen} has a violation, so --top has nothing to choose from.")
    wrong: dict[str, list[Verdict]] = {}
    for verdict in folder.verdicts():
        if verdict.model == chosen and verdict.outcome == "violation" and verdict.order:
            wrong.setdefault(verdict.case_id, []).append(verdict)
    spec = record.spec
    task = load(spec.task or "", labels=spec.labels, favourable=spec.favourable)
    dropped: Counter[str] = Counter()
    by_text: dict[str, list[Row]] = {}
    for case, _ in folder.cases():
        if case.id in wrong:
            made = _rows(case, wrong[case.id], None if top is None else tokens, task)
            dropped["no label"] += made is None
            for row in made or ():
                by_text.setdefault(row.text, []).append(row)
    rows = [same[0] for same in by_text.values() if len({row.label for row in same}) == 1]
    dropped["two labels"] = len(by_text) - len(rows)
    if not rows:
        what = f" that hold {', '.join(tokens)}" if tokens else ""
        raise UserError(f"{record.id}: {chosen} has no violations{what} with a label, so there is nothing to write.")
    taken = rows
    if wanted is not None and wanted < len(rows):
        numbers = sorted(Random(f"augment:{seed}").sample(range(len(rows)), wanted))
        taken = [rows[i] for i in numbers]
    return Augmentation(
        rows=tuple(taken),
        model=chosen,
        tokens=tokens,
        wanted=wanted,
        available=len(rows),
        dropped={reason: dropped[reason] for reason in ("no label", "two labels") if dropped[reason]},
    )


def write_rows(columns: Sequence[str], rows: Iterable[Sequence[object]], path: Path) -> None:
    """Write training rows as CSV where ``path`` ends in .csv, else as JSON lines."""
    if path.suffix.lower() == ".csv":
        plain = (["; ".join(v) if isinstance(v, tuple) else v for v in row] for row in rows)
        text = csv_text([columns, *plain])
    else:
        named = (dict(zip(columns, row, strict=True)) for row in rows)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in named)
    try:
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise UserError(f"{path} could not be written: {error.strerror}. Name another file: --out FILE") from error


def share_of(share: float | None, train_rows: int | None) -> int | None:
    """How many rows ``share`` per cent of the training rows are; None without a share."""
    if share is None:
        return None
    if not 0 < share <= 100:
        raise ConfigError(f"--share is in percent of the training rows, above 0 and at most 100; got {share:g}")
    if train_rows is None or train_rows < 1:
        raise ConfigError("--share needs how many rows the training data have: --train-rows N")
    return max(1, round(train_rows * share / 100))


def _rows(case: Case, wrong: Sequence[Verdict], tokens: Sequence[str] | None, task: Task) -> list[Row] | None:
    """The rows of a case, of changes about one of ``tokens`` where there are any; None where no label is known."""
    answer = None if case.label is None else task.read(case.label, "text")
    label, source = None if answer is None else answer.value, "data"
    if label is None:
        label, source = next((v.original_output for v in wrong if v.original_output is not None), None), "model"
    if label is None:
        return None
    ids = {v.variant_id for v in wrong}
    named = {t: re.compile(rf"(?<!\w){re.escape(t)}(?!\w)", re.IGNORECASE) for t in tokens or ()}
    written = ", ".join(label) if isinstance(label, tuple) else str(label)
    rows = []
    for variant in case.variants:
        pair = (case.original, variant)
        if variant.id not in ids or not all(isinstance(one.input, str) for one in pair):
            continue
        held = tuple(t for t, word in named.items() if any(word.search(str(one.input)) for one in pair))
        if held or tokens is None:
            rows += [
                Row(text=str(one.input), label=written, label_source=source, case=case.id, variant=one.id, tokens=held)
                for one in pair
            ]
    return rows
