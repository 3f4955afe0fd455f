"""Variants read by two people: a sheet to fill, and what it says about the automatic check (HInter, RQ3).

The sample is proportional to the attribute sets of the run, so that its share stands for all valid variants without
weights. Rows are shuffled, and nothing in the sheet says what the automatic check decided.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

from auditor.core import userfile
from auditor.core.counting import plural
from auditor.core.errors import ConfigError, DataFileError, UserError
from auditor.core.shown import cell
from auditor.core.types import FORMAT_VERSION, Estimate, is_beside
from auditor.measure.intervals import clopper_pearson
from auditor.run.review.sheet import COLUMNS, INSTRUCTIONS, VALUES, plain, records
from auditor.run.review.sheet import Row as Row
from auditor.run.review.sheet import sheet as sheet

RESULT, SAMPLES = "validity.json", "validity_samples.json"


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


def population(folder: Any) -> dict[str, Row]:
    """All variants of a run that a reader can judge, by id; placebo edits are left out.

    Raises
    ------
    UserError
        The run has no texts.
    """
    found: dict[str, Row] = {}
    for case, checks in folder.cases():
        for variant in case.variants:
            texts = (case.original.input, variant.input)
            if is_beside(variant) or not all(isinstance(t, str) for t in texts):
                continue
            check = checks.get(variant.id)
            found[variant.id] = Row(
                id=variant.id,
                case=case.id,
                attributes=variant.attributes,
                discarded=check is not None and check.status == "invalid",
                original=str(texts[0]),
                variant=str(texts[1]),
            )
    if not found:
        raise UserError(
            f"{folder.path}: the run holds no variants of texts to read. See it with: audit report {folder.path}"
        )
    return found


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


def sample(folder: Any, out: Path, *, n: int = 100, seed: int = 7, discarded: bool = False) -> list[Row]:
    """Write a sheet and its instructions, and enter the ids in the run folder.

    Parameters
    ----------
    folder : RunFolder
        A run of texts.
    out : Path
        The sheet (.csv); the instructions stand beside it as .md. Neither may exist.
    n : int
        Valid variants; all of them where there are fewer.
    seed : int
        Fixes the draw.
    discarded : bool
        Add as many variants that the automatic check discarded, mixed in.

    Raises
    ------
    UserError
        There is nothing to draw from, a file exists, or a setting is out of range.
    """
    from auditor.store.disk import write_bytes, write_json

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
    write_bytes(out, sheet(taken).encode("utf-8-sig"))
    write_bytes(guide, INSTRUCTIONS.format(sheet=out.name, run=folder.path).encode("utf-8"))
    entry = {"n": n, "seed": seed, "discarded": discarded, "ids": sorted(r.id for r in taken)}
    known = [s for s in _samples(folder.path) if s != entry]
    write_json(folder.path / SAMPLES, {"format_version": FORMAT_VERSION, "samples": [*known, entry]})
    return taken


def read(folder: Any, path: Path) -> tuple[list[Reading], Mapping[str, object]]:
    """The readings of a filled sheet, and the sample it was drawn as.

    Raises
    ------
    DataFileError
        A column, row or value is missing or unknown, or a text was changed; the message names the line.
    """
    known = population(folder)
    readings: dict[str, Reading] = {}
    for line, cells in records(path):
        where = f"{path}, line {line}"
        name = cells["id"].strip()
        if name not in known:
            what = f"the id {name!r} is no variant of {folder.path.name}" if name else "the id is missing"
            raise DataFileError(f"{where}: {what}. Restore the row, or draw a sheet: audit validity sample RUN")
        if name in readings:
            raise DataFileError(f"{where}: the id {name!r} stands twice. Keep one row of each id.")
        row = known[name]
        for column, text in (("original", row.original), ("variant", row.variant)):
            if plain(cells[column]) not in (plain(str(cell(text))), plain(text)):
                raise DataFileError(
                    f"{where}, column {column}: the text of {name} is not the one in the run, so the reading may be "
                    "of another text. Restore it from the sheet as it was drawn."
                )
        values = []
        for column in COLUMNS[3:]:
            value = cells[column].strip().casefold()
            if value not in VALUES:
                found = f"got {cells[column]!r}" if value else "the cell is empty"
                raise DataFileError(f"{where}, column {column}: {found}; enter one of {', '.join(VALUES)}.")
            values.append(value)
        readings[name] = Reading(row=row, first=values[0], second=values[1])
    return list(readings.values()), _sample_of(folder, path, set(readings))


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
    sets: dict[tuple[str, ...], list[Reading]] = {}
    for r in readings:
        sets.setdefault(r.row.attributes, []).append(r)
    shared = len(readings) - len({r.row.case for r in readings})
    note = (
        f"{shared} of {plural(len(readings), 'variant')} are of a text that is in the sheet already" if shared else ""
    )

    def share(hits: Sequence[bool]) -> Estimate | None:
        if not hits:
            return None
        found = clopper_pearson(sum(hits), len(hits), n_skipped=len(readings) - len(hits))
        return Estimate(**{**asdict(found), "note": note})

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
            {
                "attributes": list(key),
                "n": len(of),
                "wrong_both": sum(r.first == r.second == "wrong" for r in of),
                "wrong_any": sum("wrong" in (r.first, r.second) for r in of),
            }
            for key, of in sorted(sets.items())
        ),
    )


def take_in(folder: Any, path: Path) -> dict[str, Any]:
    """Read a filled sheet and write ``validity.json`` into the run folder; returns what it holds.

    Raises
    ------
    DataFileError
        As for `read`.
    """
    from auditor.store.disk import write_json

    readings, drawn = read(folder, path)
    arms: dict[Literal["valid", "discarded"], list[Reading]] = {
        "valid": [r for r in readings if not r.row.discarded],
        "discarded": [r for r in readings if r.row.discarded],
    }
    result: dict[str, object] = {
        "format_version": FORMAT_VERSION,
        "run": folder.path.name,
        "sheet": path.name,
        "sheet_sha256": userfile.sha256(path),
        "sample": {key: drawn[key] for key in ("n", "seed", "discarded")},
    }
    for name, of in arms.items():
        result[name] = asdict(arm(of)) if of else None
    if not arms["discarded"]:
        result["discarded_reason"] = "none was drawn; draw a sheet with --discarded"
    result = json.loads(json.dumps(result))
    write_json(folder.path / RESULT, result)
    return result


def controls(path: Path) -> dict[str, object] | None:
    """What ``validity.json`` of the run folder ``path`` adds to the controls of a report; None without one."""
    if not (path / RESULT).is_file():
        return None
    from auditor.store.disk import read_json

    found: dict[str, object] = {}
    for name, data in read_json(path / RESULT).items():
        if name not in ("valid", "discarded") or data is None:
            continue
        told: dict[str, object] = {
            key: value
            if value is not None
            else {"status": "not_tested", "reason": "no row was decided by both readers"}
            for key, value in (("wrong for both", data["wrong_both"]), ("wrong for one or both", data["wrong_any"]))
        } | {"same value": {"rate": data["agreement"], "n": data["n"]}, "unsure": f"{data['unsure']} of {data['n']}"}
        kappa = data["kappa"]
        undefined = f"undefined: {data['kappa_reason']}"
        found[name] = told | {"Cohen's kappa": undefined if kappa is None else f"{kappa:.2f}"}
    return found


def _samples(path: Path) -> list[dict[str, Any]]:
    if not (path / SAMPLES).is_file():
        return []
    from auditor.store.disk import read_json

    return list(read_json(path / SAMPLES)["samples"])


def _sample_of(folder: Any, path: Path, ids: set[str]) -> Mapping[str, object]:
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
