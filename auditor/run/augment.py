"""Retraining data from the violations of a run (ASTRAEA, §7, RQ3 and RQ4).

A row is a text of a case in which an answer changed, original or variant, with the label that both should get:
the one the data or the grammar gives, else the model's own answer to the original. Training on both texts with
one label is the repair the paper measures; whether it helps a given model has to be measured again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from auditor.core.errors import ConfigError, UnknownPlugin, UserError
from auditor.core.record import RunRecord, read
from auditor.core.shown import csv_text
from auditor.core.types import Case, Verdict
from auditor.tasks.task import Task

FIELDS = ("text", "label", "label_source", "case", "variant", "tokens")


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One text to train on.

    ``label_source`` is "data" for a label of the texts or the grammar, "model" for the model's answer to the
    original. ``tokens`` are the chosen words that the case holds.
    """

    text: str
    label: str
    label_source: str
    case: str
    variant: str
    tokens: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Augmentation:
    """The rows, and what they are.

    ``wanted`` is how many were asked for (None: all), ``available`` how many there were.
    """

    rows: tuple[Row, ...]
    model: str
    tokens: tuple[str, ...]
    wanted: int | None
    available: int
    dropped: Mapping[str, int]


def top_tokens(record: RunRecord, model: str, top: int) -> tuple[str, ...]:
    """The ``top`` words with the highest error rates of ``model``: those that name a group, if any has errors.

    By the rate pulled towards its family, so that a word seen three times is not ahead by chance; the same word
    in two families counts once.
    """
    rows = [t for s in record.tokens if s.model == model for t in s.tokens if t.errors]
    named = [t for t in rows if t.group] or rows
    ranked = sorted(named, key=lambda t: (-(t.shrunken.value if t.shrunken else t.rate), -t.rate, t.token))
    return tuple(dict.fromkeys(t.token for t in ranked))[:top]


def augment(
    folder: Any,
    *,
    top: int | None = None,
    share: float | None = None,
    train_rows: int | None = None,
    model: str | None = None,
    seed: int = 7,
) -> Augmentation:
    """Collect retraining rows from a run folder.

    Parameters
    ----------
    folder : RunFolder
        A run with a record.
    top : int or None
        Only cases that hold one of this many words with the highest error rates; None takes all cases.
    share : float or None
        Rows in percent of ``train_rows``, greater than 0; None takes all rows there are.
    train_rows : int or None
        How many rows the training data have; needed with ``share``.
    model : str or None
        Whose violations; None means the first model of the run.
    seed : int
        Fixes which rows a share draws.

    Raises
    ------
    UserError
        The run has no violation of this model with such words, or a setting is out of range.
    """
    from auditor import tasks

    wanted = share_of(share, train_rows)
    if top is not None and top < 1:
        raise ConfigError(f"--top must be 1 or more; got {top}")
    record = read(folder.record())
    names = list(record.spec.models)
    if model is not None and model not in names:
        raise UnknownPlugin("model", model, names)
    chosen = model or names[0]
    tokens = () if top is None else top_tokens(record, chosen, top)
    if top is not None and not tokens:
        raise UserError(f"{record.id}: no word of {chosen} has a violation, so there is none to choose by --top.")
    wrong: dict[str, list[Verdict]] = {}
    for verdict in folder.verdicts():
        if verdict.model == chosen and verdict.outcome == "violation" and verdict.order:
            wrong.setdefault(verdict.case_id, []).append(verdict)
    labels = tasks.load(record.spec.task or "")
    dropped = {"no label": 0, "two labels": 0}
    found: dict[str, list[Row]] = {}
    for case, _ in folder.cases():
        if case.id in wrong:
            for row in _rows(case, wrong[case.id], tokens, top is not None, labels, dropped):
                found.setdefault(row.text, []).append(row)
    rows = []
    for same in found.values():
        if len({row.label for row in same}) == 1:
            rows.append(same[0])
        else:
            dropped["two labels"] += 1
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
        dropped={k: n for k, n in dropped.items() if n},
    )


def write(rows: Iterable[Row], path: Path) -> None:
    """Write rows as CSV where ``path`` ends in .csv, else as JSON lines."""
    plain = [asdict(row) for row in rows]
    if path.suffix.lower() == ".csv":
        plain = [{**row, "tokens": "; ".join(row["tokens"])} for row in plain]
    write_rows(FIELDS, ([row[name] for name in FIELDS] for row in plain), path)


def write_rows(columns: Sequence[str], rows: Iterable[Sequence[object]], path: Path) -> None:
    """Write training rows as CSV where ``path`` ends in .csv, else as JSON lines.

    Raises
    ------
    UserError
        The file cannot be written.
    """
    if path.suffix.lower() == ".csv":
        text = csv_text([columns, *rows])
    else:
        told = (dict(zip(columns, row, strict=True)) for row in rows)
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in told)
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


def _rows(
    case: Case, wrong: Sequence[Verdict], tokens: Sequence[str], by_token: bool, task: Task, dropped: dict[str, int]
) -> list[Row]:
    label, source = None, "data"
    if case.label is not None:
        answer = task.read(case.label, "text")
        label = answer.value if answer.status == "ok" else None
    if label is None:
        label, source = (next((v.original_output for v in wrong if v.original_output is not None), None), "model")
    if label is None:
        dropped["no label"] += 1
        return []
    ids = {v.variant_id for v in wrong}
    rows = []
    for variant in case.variants:
        texts = [case.original.input, variant.input]
        if variant.id not in ids or not all(isinstance(t, str) for t in texts):
            continue
        held = tuple(t for t in tokens if any(_holds(str(text), t) for text in texts))
        if by_token and not held:
            continue
        for one, text in zip((case.original, variant), texts, strict=True):
            rows.append(
                Row(
                    text=str(text),
                    label=", ".join(label) if isinstance(label, tuple) else str(label),
                    label_source=source,
                    case=case.id,
                    variant=one.id,
                    tokens=held,
                )
            )
    return rows


def _holds(text: str, token: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(token)}(?!\w)", text, re.IGNORECASE) is not None
