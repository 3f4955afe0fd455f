"""Draw variants for readers, with every gate off: the rows of `tests/planted/gate`, and sheets to read them on.

    python tools/gate_draw.py --n 120 --seed 2 --out drawn.jsonl --sheet sheet.txt

The same arguments draw the same rows. Texts are those of the embedded tasks and of ``../shared/data/movie_reviews``;
documents that the committed set holds are left out, and no document gives more than two variants. Two fifths are edits
of one attribute, one fifth each joint edits, placebos (single and joint) and insertions. The sheet has the rows in an
order of its own, without file, kind or stratum, each change in brackets (*[old → new]*).
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random

from auditor import tasks
from auditor.core.types import Case, SourceText, Variant
from auditor.perturb import dictionaries
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.placebo import Placebos
from auditor.run.controls import with_placebos
from auditor.text.parse import Parser

ROOT = Path(__file__).resolve().parents[1]
REVIEWS = ROOT.parent / "shared" / "data" / "movie_reviews" / "imdb_sample.csv"
SET = ROOT / "tests" / "planted" / "gate" / "variants.jsonl"
SHARES = {"single": 0.4, "joint": 0.2, "placebo": 0.2, "other": 0.2}
AROUND = 110  # characters on each side of a change on the sheet
LONGEST = 1500  # characters of a review
EACH = 2  # variants of a document


def texts(known: frozenset[str]) -> Iterator[tuple[str, SourceText]]:
    """(File, text) of all documents that are not in the committed set."""
    for path in sorted((ROOT / "auditor" / "embedded" / "seeds").glob("*.jsonl")):
        if path.stem not in tasks.available():
            continue
        for seed in tasks.load(path.stem).seeds():
            if seed.id not in known:
                yield f"auditor/embedded/seeds/{path.name}", seed
    if REVIEWS.exists():
        with REVIEWS.open(encoding="utf-8", newline="") as lines:
            for number, row in enumerate(csv.DictReader(lines)):
                if f"imdb-{number}" not in known and len(row["text"]) <= LONGEST:
                    yield "movie_reviews/imdb_sample.csv", SourceText(id=f"imdb-{number}", text=row["text"])


def cases(found: Sequence[SourceText]) -> Iterator[Case]:
    """Each text with all kinds of variant."""
    every = [dictionaries.load(name) for name in dictionaries.builtin()]
    maker = Placebos(dictionaries=every)
    parser = Parser()
    for insertions in (False, True):
        suite = MutationSuite(
            seeds=found,
            dictionaries=every,
            insertions=insertions,
            per_seed=4,
            who="all-one-way",
            parser=parser,
        )
        while made := suite.ask(64, Random(0)):
            for case in made:
                yield case if insertions else with_placebos(case, maker, per_seed=4, seed=7)


def stratum(variant: Variant) -> str:
    """The kind of a variant: placebo, joint, other (an insertion), or single."""
    kinds = {edit.kind for edit in variant.edits}
    if "placebo" in kinds:
        return "placebo"
    return "other" if "insertion" in kinds else "joint" if len(variant.attributes) > 1 else "single"


def drawn(n: int, seed: int, known: frozenset[str]) -> list[dict[str, object]]:
    """``n`` rows, by strata, of at most `EACH` variants of a document."""
    rng = Random(seed)
    pool = list(texts(known))
    rng.shuffle(pool)
    files = {text.id: file for file, text in pool}
    by_text = {text.text: text.id for _, text in pool}
    strata: dict[str, list[tuple[str, Variant, str]]] = {name: [] for name in SHARES}
    for case in cases([text for _, text in islice(pool, 6 * n)]):
        original = str(case.original.input)
        for variant in case.variants:
            strata[stratum(variant)].append((by_text[original], variant, original))
    out: list[dict[str, object]] = []
    taken: Counter[str] = Counter()
    for name, share in SHARES.items():
        rows = sorted(strata[name], key=lambda row: row[1].id)
        rng.shuffle(rows)
        left = round(n * share)
        for document, variant, original in rows:
            if left and taken[document] < EACH:
                taken[document] += 1
                left -= 1
                out.append(_row(files[document], document, name, variant, original))
    return out


def _row(file: str, document: str, name: str, variant: Variant, original: str) -> dict[str, object]:
    edits = [
        [*e.where, e.source, e.target, e.kind, e.attribute, e.source_group, e.target_group]
        for e in variant.edits
        if isinstance(e.where, tuple)
    ]
    digest = hashlib.sha256(original.encode()).hexdigest()
    key = hashlib.sha256(f"{digest}{variant.input}".encode()).hexdigest()[:10]
    return {"id": f"g{key}", "file": file, "source": document, "sha256": digest, "stratum": [name],
            "text": original, "edits": edits}  # fmt: skip


def line(row: dict[str, object]) -> str:
    """A row as it is read."""
    text, edits = str(row["text"]), row["edits"]
    assert isinstance(edits, list)
    first, last = max(0, edits[0][0] - AROUND), min(len(text), edits[-1][1] + AROUND)
    parts, at = [], first
    for start, end, source, target, *_ in edits:
        parts += [text[at:start], f"[{source} → {target}]"]
        at = end
    shown = "".join([*parts, text[at:last]]).replace("\n", " / ")
    return f"{row['id']}  {'[...] ' if first else ''}{shown}{' [...]' if last < len(text) else ''}"


def main() -> None:
    """Draw, write rows and sheet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=120)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--order", type=int, default=1, help="of the sheet; a second reader takes another")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sheet", type=Path, required=True)
    parser.add_argument(
        "--known", type=Path, nargs="*", default=[], help="further sets whose documents are left out"
    )
    args = parser.parse_args()
    lines = [one for file in (SET, *args.known) for one in file.read_text(encoding="utf-8").splitlines()]
    known = {json.loads(one)["source"].split("#")[0] for one in lines}
    rows = drawn(args.n, args.seed, frozenset(known))
    args.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    Random(args.order).shuffle(rows)
    args.sheet.write_text("".join(line(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
