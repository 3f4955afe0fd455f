"""Draw variants for readers, with every gate off: the rows of `tests/planted/gate`, and sheets to read them on.

    python tools/gate_draw.py --kept 200 --dropped 60 --seed 2 --out drawn.jsonl --sheet sheet.txt

The same arguments draw the same rows. Texts are those of the embedded tasks and of ``../shared/data`` (reviews, web
text and dialogue, case summaries, care notes, recorded assessments); documents of sets that are named are left out,
and no document gives more than two variants. Two fifths are edits of one attribute, three tenths each joint edits
and placebos (single and joint); of each as many that the default gate keeps, and that it drops, as asked.
The sheet has the rows in an order of its own, without file, kind, stratum or verdict, each change in brackets (*[old →
new]*). A row's ``weight`` is how many variants of its stratum and verdict were made for each that was drawn.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from auditor import tasks
from auditor.core.types import Case, SourceText, Variant
from auditor.perturb import dictionaries
from auditor.perturb.gate import Constructs
from auditor.perturb.mutation import MutationSuite
from auditor.perturb.placebo import Placebos
from auditor.run.rounds import with_placebos
from auditor.text.parse import Parser, sentences

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
SETS = sorted((ROOT / "tests" / "planted" / "gate").glob("*.jsonl"))
WRITTEN = ROOT / "tests" / "planted" / "gate" / "texts" / "written.jsonl"  # for this purpose
SHARES = {"single": 0.4, "joint": 0.3, "placebo": 0.3}
AROUND = 110  # characters on each side of a change on the sheet
LONGEST = 1500  # characters of a review
EACH = 2  # variants of a document
OF_A_FILE = 90  # documents of one file that variants are made of


_Text = tuple[str, SourceText, bool]  # file, text, whether its licence allows a copy


def texts(known: frozenset[str], part: int = 0) -> Iterator[_Text]:
    """All documents that are not in the committed sets; ``part`` says which of the larger collections are taken."""
    for path in sorted((ROOT / "auditor" / "embedded" / "seeds").glob("*.jsonl")):
        if path.stem in tasks.available():
            for seed in tasks.load(path.stem).seeds():
                if seed.id not in known:
                    yield f"auditor/embedded/seeds/{path.name}", seed, True
    for line in WRITTEN.read_text(encoding="utf-8").splitlines() if WRITTEN.exists() else ():
        row = json.loads(line)
        if row["id"] not in known:
            yield str(WRITTEN.relative_to(ROOT)), SourceText(id=row["id"], text=row["text"]), True
    for read in (_reviews, _films, _web, _law, _recorded) if SHARED.exists() else ():
        for file, source, text, copied in read(part):
            if source.partition("#")[0] not in known and len(text) > 80:
                yield file, SourceText(id=source, text=text), copied


def _reviews(part: int) -> Iterator[tuple[str, str, str, bool]]:
    with (SHARED / "movie_reviews" / "imdb_sample.csv").open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines)):
            if len(row["text"]) <= LONGEST:
                yield "movie_reviews/imdb_sample.csv", f"imdb-{number}", row["text"], False


def _films(part: int) -> Iterator[tuple[str, str, str, bool]]:
    file = "movie_reviews/movie_reviews.zip"
    with zipfile.ZipFile(SHARED / file) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".txt"))
        for name in names[part::9]:
            text = archive.read(name).decode("utf-8", "replace").strip()
            yield file, *_window(Path(name).name, text, 6), False


def _web(part: int) -> Iterator[tuple[str, str, str, bool]]:
    file = "ud_english_ewt/en_ewt-ud-train.conllu.gz"
    documents: dict[str, list[str]] = {}
    with gzip.open(SHARED / file, "rt", encoding="utf-8") as lines:
        name = ""
        for line in lines:
            if line.startswith("# newdoc id = "):
                name = line.split("= ", 1)[1].strip()
            elif line.startswith("# text = "):
                documents.setdefault(name, []).append(line[9:].strip())
    for name, found in documents.items():
        yield file, f"{name}#0+{min(5, len(found))}", " ".join(found[:5]), False


def _law(part: int) -> Iterator[tuple[str, str, str, bool]]:
    file = "legal/MultiLexSum.jsonl.gz"
    with gzip.open(SHARED / file, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % 4 == part % 4:
                yield file, *_window(f"multilexsum-{number}", json.loads(line)["document"], 3), False


def _recorded(part: int) -> Iterator[tuple[str, str, str, bool]]:
    for file, name, column in (("care_summaries", "care", "summary"),
                               ("hiring_justifications", "justification", "justification")):  # fmt: skip
        with gzip.open(SHARED / "recorded_llm" / f"{file}.csv.gz", "rt", encoding="utf-8", newline="") as lines:
            for number, row in enumerate(csv.DictReader(lines)):
                if number % 23 == part % 23:
                    source, text = _window(f"{name}-{number}", row[column], 4)
                    yield f"recorded_llm/{file}.csv.gz", source, text, True


def _window(name: str, text: str, n: int) -> tuple[str, str]:
    """(Reference, text) of the first ``n`` sentences."""
    spans = sentences(text)[:n]
    return f"{name}#0+{n}", text[spans[0][0] : spans[-1][1]].strip() if spans else ""


def cases(found: Sequence[SourceText]) -> Iterator[Case]:
    """Each text with all kinds of variant."""
    every = [dictionaries.load(name) for name in dictionaries.builtin()]
    maker = Placebos(dictionaries=every)
    parser = Parser()
    suite = MutationSuite(seeds=found, dictionaries=every, per_seed=4, who="all-one-way", parser=parser)
    while made := suite.ask(64, Random(0)):
        for case in made:
            yield with_placebos(case, maker, per_seed=4, seed=7)


def stratum(variant: Variant) -> str:
    """The kind of a variant: placebo, joint or single."""
    kinds = {edit.kind for edit in variant.edits}
    if "placebo" in kinds:
        return "placebo"
    return "joint" if len(variant.attributes) > 1 else "single"


def drawn(wanted: dict[str, int], seed: int, known: frozenset[str], part: int) -> list[dict[str, object]]:
    """Rows by what the gate says ("kept", "dropped") and by strata, of at most `EACH` variants of a document."""
    rng = Random(seed)
    by_file: dict[str, list[_Text]] = {}
    for row in texts(known, part):
        by_file.setdefault(row[0], []).append(row)
    pool: list[_Text] = []
    for own in by_file.values():  # no kind of text is more than twice as frequent as it has to be
        rng.shuffle(own)
        pool += own[:OF_A_FILE]
    found = {text.text: (file, text.id, copied) for file, text, copied in pool}
    strata: dict[tuple[str, str], list[tuple[Variant, str]]] = {}
    gate = Constructs(parser=Parser())
    for case in cases([text for _, text, _ in pool]):
        original = str(case.original.input)
        for variant, check in zip(case.variants, gate.check(case.original, case.variants), strict=True):
            verdict = "dropped" if check.status == "invalid" else "kept"
            strata.setdefault((verdict, stratum(variant)), []).append((variant, original))
    out: list[dict[str, object]] = []
    taken: Counter[str] = Counter()
    made: set[str] = set()
    for verdict, n in wanted.items():
        for name, share in SHARES.items():
            rows = sorted(strata.get((verdict, name), ()), key=lambda row: row[0].id)
            rng.shuffle(rows)
            left = round(n * share)
            weight = round(len(rows) / left, 4) if left else 0.0
            for variant, original in rows:
                document = found[original][1]
                if left and taken[document] < EACH and variant.input not in made:
                    made.add(str(variant.input))
                    taken[document] += 1
                    left -= 1
                    out.append({**_row(*found[original], name, variant, original), "weight": weight})
    return out


def _row(file: str, document: str, copied: bool, name: str, variant: Variant, original: str) -> dict[str, object]:
    edits = [
        [*e.where, e.source, e.target, e.kind, e.attribute, e.source_group, e.target_group]
        for e in variant.edits
        if isinstance(e.where, tuple)
    ]
    digest = hashlib.sha256(original.encode()).hexdigest()
    key = hashlib.sha256(f"{digest}{variant.input}".encode()).hexdigest()[:10]
    row = {"id": f"g{key}", "file": file, "source": document, "sha256": digest, "stratum": [name],
           "text": original, "copied": copied, "edits": edits}  # fmt: skip
    return row


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
    parser.add_argument("--kept", type=int, default=200, help="variants that the default gate keeps")
    parser.add_argument("--dropped", type=int, default=60, help="and that it drops")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--order", type=int, default=1, help="of the sheet; a second reader takes another")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sheet", type=Path, required=True)
    parser.add_argument("--known", type=Path, nargs="*", default=[], help="further sets whose documents are left out")
    parser.add_argument("--part", type=int, default=0, help="which part of the larger collections, 0 to 8")
    args = parser.parse_args()
    lines = [one for file in (*SETS, *args.known) for one in file.read_text(encoding="utf-8").splitlines()]
    known = {json.loads(one)["source"].split("#")[0] for one in lines}
    rows = drawn({"kept": args.kept, "dropped": args.dropped}, args.seed, frozenset(known), args.part)
    args.out.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    Random(args.order).shuffle(rows)
    args.sheet.write_text("".join(line(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
