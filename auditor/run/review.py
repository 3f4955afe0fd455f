"""Variants read by two people: a sheet to fill, and what it says about the automatic check (HInter, RQ3).

The sample is proportional to the attribute sets of the run, so that its share stands for all valid variants without
weights. Rows are shuffled, and nothing in the sheet says what the automatic check decided.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from auditor.core import reading, row_files
from auditor.core.errors import ConfigError, DataFileError, UserError
from auditor.core.shown import cell, csv_text, plural
from auditor.core.types import FORMAT_VERSION, Estimate, is_beside
from auditor.measure.intervals import clopper_pearson
from auditor.store.disk import read_json, write_bytes, write_json
from auditor.store.folder import RunFolder

RESULT, SAMPLES = "validity.json", "validity_samples.json"
COLUMNS = ("id", "original", "variant", "reader_1", "reader_2")
VALUES = ("ok", "wrong", "unsure")
INSTRUCTIONS = """# How to read {sheet}

Each row has an original text and a variant in which words for people were replaced. Two people fill the sheet
independently and without talking about it: one the column `reader_1`, the other the column `reader_2`.

Read both texts and enter one of three values:

- `ok`: the variant is English that somebody could have written, and it says the same as the original about
  another person.
- `wrong`: the change broke the grammar, made the text contradict itself (he … her for one person), or changed its
  meaning beyond the person named. Mistakes that the original has as well do not count.
- `unsure`: neither can be said.

Judge the text only, not what a model should answer to it and not whether you like what it says.

Keep all rows and leave `id`, `original` and `variant` as they are. A text that begins with `=`, `+`, `-` or `@` has
an apostrophe in front, so that a spreadsheet shows it instead of computing it. Save as CSV (UTF-8), then run:

    audit validity import {run} {sheet}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One variant to read. ``discarded`` is what the automatic check said; it is not in the sheet."""

    id: str
    case: str
    attributes: tuple[str, ...]
    discarded: bool
    original: str
    variant: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What the two readers entered for one row."""

    row: Row
    first: str
    second: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """The readings of the valid or of the discarded variants.

    Shares are of rows that both readers decided (``ok`` or ``wrong``); a reader's own share of those that this
    reader decided. None where nobody decided any. ``agreement`` is the share of rows with equal values in [0, 1];
    ``kappa`` is Cohen's, over the three values, in [-1, 1], or None with ``kappa_reason``.
    """

    n: int
    unsure: int
    wrong_both: Estimate | None
    wrong_any: Estimate | None
    wrong_reader_1: Estimate | None
    wrong_reader_2: Estimate | None
    agreement: float
    kappa: float | None
    kappa_reason: str
    by_attributes: tuple[Mapping[str, object], ...]


def population(folder: RunFolder) -> dict[str, Row]:
    """All variants of a run that a reader can judge, by id; placebo edits are left out.

    Raises
    ------
    UserError
        The run has no texts.
    """
    rows: dict[str, Row] = {}
    for case, checks in folder.cases():
        for variant in case.variants:
            texts = (case.original.input, variant.input)
            if is_beside(variant) or not all(isinstance(t, str) for t in texts):
                continue
            check = checks.get(variant.id)
            rows[variant.id] = Row(
                id=variant.id,
                case=case.id,
                attributes=variant.attributes,
                discarded=check is not None and check.status == "invalid",
                original=str(texts[0]),
                variant=str(texts[1]),
            )
    if not rows:
        raise UserError(
            f"{folder.path}: the run holds no variants of texts to read. See it with: audit report {folder.path}"
        )
    return rows


def draw(rows: Iterable[Row], n: int, seed: int) -> list[Row]:
    """Draw ``n`` rows without replacement, each attribute set in proportion (largest remainders), shuffled."""
    strata: dict[tuple[str, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda r: r.id):
        strata.setdefault(row.attributes, []).append(row)
    total = sum(map(len, strata.values()))
    n = min(n, total)
    rng = Random(f"validity:{seed}")
    sizes = {key: n * len(strata[key]) // total for key in sorted(strata)}
    order = sorted(sizes, key=lambda key: (-(n * len(strata[key]) % total), key))
    for key in order[: n - sum(sizes.values())]:
        sizes[key] += 1
    taken = [row for key, size in sizes.items() for row in rng.sample(strata[key], size)]
    rng.shuffle(taken)
    return taken


def sample(folder: RunFolder, out: Path, *, n: int = 100, seed: int = 7, discarded: bool = False) -> list[Row]:
    """Write a sheet and its instructions, and enter the ids in the run folder.

    Parameters
    ----------
    out : Path
        The sheet (.csv); the instructions stand beside it as .md. Neither may exist.
    n : int
        Valid variants; all of them where there are fewer.
    discarded : bool
        Add as many variants that the automatic check discarded, mixed in.

    Raises
    ------
    UserError
        There is nothing to draw from, a file exists, or a setting is out of range.
    """
    if n < 1:
        raise ConfigError(f"--n must be 1 or more; got {n}")
    guide = out.with_suffix(".md")
    if out == guide:
        raise ConfigError(f"--out {out}: the sheet is a CSV file. Name it: --out {out.with_suffix('.csv')}")
    for path in (out, guide):
        if path.exists():
            raise ConfigError(f"{path} exists and may hold readings. Name another file: --out FILE")
    rows = list(population(folder).values())
    taken = draw((r for r in rows if not r.discarded), n, seed)
    if not taken:
        raise UserError(f"{folder.path}: no variant is valid, so there is none to draw.")
    if discarded:
        taken += draw((r for r in rows if r.discarded), len(taken), seed)
        Random(f"validity:mix:{seed}").shuffle(taken)
    sheet = csv_text([COLUMNS, *([r.id, r.original, r.variant, "", ""] for r in taken)])
    write_bytes(out, sheet.encode("utf-8-sig"))
    write_bytes(guide, INSTRUCTIONS.format(sheet=out.name, run=folder.path).encode("utf-8"))
    entry = {"n": n, "seed": seed, "discarded": discarded, "ids": sorted(r.id for r in taken)}
    known = [s for s in _samples(folder.path) if s != entry]
    write_json(folder.path / SAMPLES, {"format_version": FORMAT_VERSION, "samples": [*known, entry]})
    return taken


def read(folder: RunFolder, path: Path) -> tuple[list[Reading], Mapping[str, object]]:
    """The readings of a filled sheet, and the sample it was drawn as.

    Raises
    ------
    DataFileError
        A column, row or value is missing or unknown, or a text was changed; the message names the line.
    """
    known = population(folder)
    readings: dict[str, Reading] = {}
    for line, cells in _records(path):
        where = f"{path}, line {line}"
        name = cells["id"].strip()
        if name not in known:
            what = f"the id {name!r} is no variant of {folder.path.name}" if name else "the id is missing"
            raise DataFileError(f"{where}: {what}. Restore the row, or draw a sheet: audit validity sample RUN")
        if name in readings:
            raise DataFileError(f"{where}: the id {name!r} stands twice. Keep one row of each id.")
        row = known[name]
        for column, text in (("original", row.original), ("variant", row.variant)):
            if _plain(cells[column]) not in (_plain(str(cell(text))), _plain(text)):
                raise DataFileError(
                    f"{where}, column {column}: the text of {name} is not the one in the run, so the reading may be "
                    "of another text. Restore it from the sheet as it was drawn."
                )
        values = []
        for column in COLUMNS[3:]:
            value = cells[column].strip().casefold()
            if value not in VALUES:
                entered = f"got {cells[column]!r}" if value else "the cell is empty"
                raise DataFileError(f"{where}, column {column}: {entered}; enter one of {', '.join(VALUES)}.")
            values.append(value)
        readings[name] = Reading(row=row, first=values[0], second=values[1])
    return list(readings.values()), _sample_of(folder, path, set(readings))


def _plain(text: str) -> str:
    """Spreadsheets write line ends in their own way."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _records(path: Path) -> Iterable[tuple[int, dict[str, str]]]:
    """Line number and cells of each row that is not blank."""
    table = row_files.parse(path, row_files.decode(path, row_files.content(path)), wanted=COLUMNS)
    header = [name.casefold() for name in table.columns]
    if lost := [column for column in COLUMNS if header.count(column) != 1]:
        raise DataFileError(
            f"{path}, line 1: each column once, and {', '.join(lost)} is not. Needed: {', '.join(COLUMNS)}."
        )
    for line, cells in table.rows:
        if any(cell.strip() for cell in cells):
            yield line, dict(zip(header, cells, strict=True))


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> tuple[float | None, str]:
    """Cohen's kappa of two readers over nominal values, or None with the reason.

    Source: J. Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20
    (1960).

    Examples
    --------
    >>> cohen_kappa([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b")])
    (0.5, '')
    """
    n = len(pairs)
    if not n:
        return None, "no row was read"
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    # On whole numbers, so that "expected agreement is 1" is exact.
    same, chance = n * sum(a == b for a, b in pairs), sum(first[v] * second[v] for v in first)
    if chance == n * n:
        return None, f"both readers entered {pairs[0][0]!r} in every row"
    return (same - chance) / (n * n - chance), ""


def arm(readings: Sequence[Reading]) -> Arm:
    """Shares with exact intervals, agreement and kappa of one arm with at least one reading."""
    both = [(r.first, r.second) for r in readings if "unsure" not in (r.first, r.second)]
    pairs = [(r.first, r.second) for r in readings]
    kappa, reason = cohen_kappa(pairs)
    sets: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for r in readings:
        sets.setdefault(r.row.attributes, []).append((r.first, r.second))
    note = ""
    if shared := len(readings) - len({r.row.case for r in readings}):
        note = f"{shared} of {plural(len(readings), 'variant')} are of a text that is in the sheet already"

    def share(hits: Sequence[bool]) -> Estimate | None:
        if not hits:
            return None
        return replace(clopper_pearson(sum(hits), len(hits), n_skipped=len(readings) - len(hits)), note=note)

    return Arm(
        n=len(readings),
        unsure=len(readings) - len(both),
        wrong_both=share([a == b == "wrong" for a, b in both]),
        wrong_any=share(["wrong" in pair for pair in both]),
        wrong_reader_1=share([a == "wrong" for a, _ in pairs if a != "unsure"]),
        wrong_reader_2=share([b == "wrong" for _, b in pairs if b != "unsure"]),
        agreement=sum(a == b for a, b in pairs) / len(pairs),
        kappa=kappa,
        kappa_reason=reason,
        by_attributes=tuple(
            {"attributes": list(key), "n": len(of), "wrong_both": sum(a == b == "wrong" for a, b in of)}
            | {"wrong_any": sum("wrong" in pair for pair in of)}
            for key, of in sorted(sets.items())
        ),
    )


def take_in(folder: RunFolder, path: Path) -> dict[str, Any]:
    """Read a filled sheet and write ``validity.json`` into the run folder; returns what it holds.

    Raises
    ------
    DataFileError
        As for `read`.
    """
    readings, drawn = read(folder, path)
    valid, discarded = ([r for r in readings if r.row.discarded == out] for out in (False, True))
    result: dict[str, object] = {
        "format_version": FORMAT_VERSION,
        "run": folder.path.name,
        "sheet": path.name,
        "sheet_sha256": reading.sha256(path),
        "sample": {key: drawn[key] for key in ("n", "seed", "discarded")},
        "valid": asdict(arm(valid)) if valid else None,
        "discarded": asdict(arm(discarded)) if discarded else None,
    }
    if not discarded:
        result["discarded_reason"] = "none was drawn; draw a sheet with --discarded"
    result = json.loads(json.dumps(result))
    write_json(folder.path / RESULT, result)
    return result


def controls(path: Path) -> dict[str, object] | None:
    """What ``validity.json`` of the run folder ``path`` adds to the controls of a report; None without one."""
    if not (path / RESULT).is_file():
        return None
    nobody = {"status": "not_tested", "reason": "no row was decided by both readers"}
    arms: dict[str, object] = {}
    for name, data in read_json(path / RESULT).items():
        if name in ("valid", "discarded") and data is not None:
            kappa = data["kappa"]
            arms[name] = {
                "wrong for both": nobody if data["wrong_both"] is None else data["wrong_both"],
                "wrong for one or both": nobody if data["wrong_any"] is None else data["wrong_any"],
                "same value": {"rate": data["agreement"], "n": data["n"]},
                "unsure": f"{data['unsure']} of {data['n']}",
                "Cohen's kappa": f"undefined: {data['kappa_reason']}" if kappa is None else f"{kappa:.2f}",
            }
    return arms


def _samples(path: Path) -> list[dict[str, Any]]:
    if not (path / SAMPLES).is_file():
        return []
    return list(read_json(path / SAMPLES)["samples"])


def _sample_of(folder: RunFolder, path: Path, ids: set[str]) -> Mapping[str, object]:
    """The sample whose ids the sheet holds, all of them."""
    possible = [s for s in _samples(folder.path) if ids <= set(s["ids"])]
    if not possible:
        raise DataFileError(
            f"{path}: no sheet with these rows was drawn from {folder.path.name}. Draw one: audit validity sample RUN"
        )
    closest = min(possible, key=lambda s: len(s["ids"]))
    missing = [i for i in closest["ids"] if i not in ids]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise DataFileError(
            f"{path}: the rows of {', '.join(missing[:3])}{more} are missing; leaving rows out would change the share. "
            "Restore them, with `unsure` where nothing can be said."
        )
    return closest
