"""Reads raw pair files: ``source;target`` lines, as HInter publishes them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from auditor.core import yamlfile
from auditor.core.counting import plural
from auditor.core.errors import DataFileError
from auditor.perturb.dictionaries.entries import Dictionary, Group, Term

PASSED_OVER = ", so the file was passed over"


def load_pairs(files: Iterable[str | Path], attribute: str | None = None) -> list[Dictionary]:
    """Load raw pair files: ``source;target`` per line, terms are literal text.

    Parameters
    ----------
    files : iterable of path
        CSV files or folders of them. Groups come from the file's name ``a_b.csv`` (split at the first
        underscore). A file without any pair is passed over, and noted.
    attribute : str or None
        The attribute of all files; None takes each file's folder name.

    Returns
    -------
    list of Dictionary
        One for each attribute, sorted; the files of one attribute are united.

    Raises
    ------
    DataFileError
        A file is missing or not UTF-8, or an attribute has no pair at all; names file and line.
    """
    united: dict[str, dict[tuple[Term, Term], None]] = {}
    notes: dict[str, list[str]] = {}
    hashes: dict[str, list[str]] = {}
    for path in expand(files):
        name = attribute or path.resolve().parent.name
        text = yamlfile.read_text(path)
        pairs, passed = _read_pairs(text, path, name)
        united.setdefault(name, {}).update(dict.fromkeys(pairs))
        notes.setdefault(name, []).extend(passed)
        hashes.setdefault(name, []).append(hashlib.sha256(text.encode()).hexdigest())
    out = []
    for name in sorted(united):
        if not united[name]:
            raise DataFileError(
                f"{notes[name][0].removesuffix(PASSED_OVER)}. Separate the two words by a semicolon, one pair a line: "
                "man;woman"
            )
        out.append(_from_pairs(name, tuple(united[name]), notes[name], hashes[name]))
    return out


def expand(files: Iterable[str | Path]) -> list[Path]:
    """Return the given files, and the ``.csv`` files of given folders."""
    paths: list[Path] = []
    for given in files:
        path = Path(given)
        paths += sorted(path.glob("*.csv")) if path.is_dir() else [path]
    if not paths:
        raise DataFileError("no pair files were given, or the folder holds no .csv file")
    return paths


def _read_pairs(text: str, path: Path, attribute: str) -> tuple[list[tuple[Term, Term]], list[str]]:
    first, _, second = path.stem.partition("_")
    groups = (first, second) if second else ("source", "target")
    pairs: list[tuple[Term, Term]] = []
    short = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(";")]
        if len(cells) > 2 and any(cells[2:]):
            raise DataFileError(f"{path}, line {number}: {plural(len(cells), 'cell')}, expected source;target")
        if len(cells) < 2 or not cells[0] or not cells[1]:
            short += 1
            continue
        for cell in cells[:2]:
            if not any(c.isalnum() for c in cell):
                raise DataFileError(f"{path}, line {number}: the term {cell!r} holds no letter or digit")
        if cells[0] == cells[1]:
            continue
        made = [
            Term(text=cell, attribute=attribute, group=group, slot="pair", source=path.name)
            for cell, group in zip(cells[:2], groups, strict=True)
        ]
        pairs.append((made[0], made[1]))
    if not pairs:
        return pairs, [f"{path}: no line reads source;target{PASSED_OVER}"]
    return pairs, [f"{path.name}: {plural(short, 'line')} without a pair passed over"] if short else []


def _from_pairs(
    attribute: str, pairs: tuple[tuple[Term, Term], ...], notes: Sequence[str], hashes: Sequence[str]
) -> Dictionary:
    # One term may come from several files: the file must not make it two terms.
    canonical: dict[tuple[str, str], Term] = {}
    for pair in pairs:
        for term in pair:
            canonical.setdefault((term.text, term.group), term)
    unified = tuple(dict.fromkeys((canonical[s.text, s.group], canonical[t.text, t.group]) for s, t in pairs))
    groups = sorted({t.group for t in canonical.values()})
    return Dictionary(
        attribute=attribute,
        groups={g: Group(name=g, label=g.replace("_", " ")) for g in groups},
        terms=tuple(canonical.values()),
        pairs=unified,
        name=f"{attribute} (pairs)",
        sha256=hashlib.sha256("".join(hashes).encode()).hexdigest(),
        notes=tuple(notes),
    )
