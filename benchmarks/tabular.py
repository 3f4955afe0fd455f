"""Themis, Aequitas and SG next to the printed algorithms and the released script, on coded Adult and German credit.

    python benchmarks/tabular.py [share released speed slow sg paths themis] [--cells census/sex …] [--models LR …]

- ``share``: distinct discriminatory cases in per cent of distinct cases that Aequitas generated, with 500 global and 200
  local trials; means over seeds. The literal run is cut off after 4 seconds; what it found until then counts.
- ``released``: the same next to the authors' released script. The note has the script's lowest and highest run, and its
  mean with the inverted sign of its learning signal put right.
- ``speed``: distinct discriminatory cases per second of Aequitas at 200,000 generated, next to the literal search.
- ``slow``: calls per distinct discriminatory case where only 500 rows may be asked, for every method; sums over
  seeds. ``themis`` asks uniform rows, ``given rows`` the training rows. Literal SG needs 5,000 calls for its first path.
- ``sg``: cases, faults (on one tree fitted to all given rows) and CPU seconds of the first 300 cases of SG.
- ``paths``: paths of a surrogate tree that seeds and global search take, against uniform rows (Table 7).
- ``themis``: rows a second of CPU time against the bare ``predict``.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import random
import statistics
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import SHARED, Row, shared
from literal_aequitas import Outcome, aequitas, released
from numpy.typing import NDArray
from surrogate import Surrogate, fault_count

from auditor.tables import tabular_plan, themis
from auditor.tables.aequitas import run as run_aequitas
from auditor.tables.columns import Column
from auditor.tables.evaluate import Evaluator
from auditor.tables.row_schema import Schema, case_keys, uniform
from auditor.tables.sg import PHASES, Search
from auditor.tables.sg import run as run_sg
from auditor.tables.tabular_plan import AequitasOptions, OptionSet, SgOptions

Codes = NDArray[np.int32]
FILES = {"census": "adult/census_coded.csv.gz", "credit": "german/credit_sample_adf.csv"}
# Columns with their lowest and highest code, as Aequitas and ADF have them; ``*``: ordered.
COLUMNS = {
    "census": "age*1-9 workclass:0-7 fnlwgt*0-39 education*0-15 marital:0-6 occupation:0-13 relationship:0-5 race:0-4 "
    "sex:0-1 gain*0-99 loss*0-39 hours*0-99 country:0-39",
    "credit": "checking*0-3 duration*1-80 history:0-4 purpose:0-10 amount*1-200 savings*0-4 employment*0-4 "
    "instalment*1-4 sex:0-1 parties:0-2 residence*1-4 property:0-3 age*1-8 plans:0-2 housing:0-2 existing*1-4 job:0-3 "
    "dependents*1-2 telephone:0-1 foreign:0-1",
}
CELLS = ("census/sex", "census/race", "credit/sex", "credit/age")
MODELS = ("LR", "DT", "MLP")
TRIALS = {"global_n": 500, "local_n": 200}
SLOW_TRIALS = {"global_n": 100, "local_n": 50}


@dataclass(frozen=True)
class Subject:
    """One data set, its schema with one protected column, its fitted model and training rows."""

    name: str
    schema: Schema
    model: Any
    train: Codes

    def evaluator(self, **options: Any) -> Evaluator:
        """Return a fresh evaluator of the model."""
        return Evaluator(self.model.predict, self.schema, **options)


def available() -> bool:
    """Return whether the shared data are there."""
    return all((SHARED / path).exists() for path in FILES.values())


@lru_cache(maxsize=4)
def table(name: str) -> tuple[Schema, Codes, NDArray[np.int64]]:
    """Return schema (nothing protected), codes and labels; rows outside the domain of the papers are left out."""
    columns = []
    for text in COLUMNS[name].split():
        ordered = "*" in text
        column, bounds = text.split("*" if ordered else ":")
        low, high = map(int, bounds.split("-"))
        columns.append(Column(name=column, kind="integer", codes=high - low + 1, low=low, ordered=ordered))
    path = shared(FILES[name])
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        raw = np.array(list(csv.reader(file))[1:], dtype=np.int64)
    codes = np.stack([column.encode(raw[:, j]) for j, column in enumerate(columns)], axis=1).astype(np.int32)
    inside = (codes >= 0).all(axis=1)
    return Schema(columns=tuple(columns), target="label", name=name), codes[inside], raw[inside, -1]


def estimator(kind: str) -> Any:
    """Return an unfitted model: scikit-learn's defaults, but a larger limit of iterations where they warn."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    return {
        "LR": lambda: LogisticRegression(max_iter=5000),
        "DT": lambda: DecisionTreeClassifier(random_state=0),
        "MLP": lambda: MLPClassifier((64, 32), random_state=0, max_iter=300),
    }[kind]()


@lru_cache(maxsize=32)
def _fitted(name: str, kind: str) -> tuple[Any, Codes]:
    from sklearn.model_selection import train_test_split

    schema, codes, labels = table(name)
    train, _, y, _ = train_test_split(codes, labels, test_size=0.2, stratify=labels, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator(kind).fit(schema.decode(train), y), train


def subject(cell: str, kind: str) -> Subject:
    """Return a fitted model with one protected column (``census/sex``)."""
    name, protected = cell.split("/")
    model, train = _fitted(name, kind)
    return Subject(f"{cell} {kind}", table(name)[0].protecting([protected]), model, train)


class Sizes(NamedTuple):
    """How much is measured."""

    seeds: int = 3
    seconds: float = 4.0  # of one literal or released run
    calls: int = 500
    limit: int = 300
    generated: int = 200_000
    cases: int = 500_000


# -- Aequitas --------------------------------------------------------------------------------------------


def literal(what: Subject, seed: int, seconds: float, search: Any = aequitas, **options: Any) -> Outcome:
    """Run the printed algorithms, or the released script (``search``), with one ``predict`` call a row."""
    low = np.array([c.low for c in what.schema.columns], dtype=np.float64)

    def predict_one(row: Sequence[int]) -> float:
        return float(what.model.predict((np.array(row) + low)[None])[0])

    cards, protected = what.schema.cards.tolist(), what.schema.protected_index.tolist()
    return search(predict_one, cards, protected, rng=random.Random(seed), max_seconds=seconds, **options)


def our_share(what: Subject, seeds: int) -> float:
    """Return the mean share of discriminatory cases in per cent, without the separate share estimate."""
    options = AequitasOptions.of({"trials": 0, **TRIALS})
    found = [run_aequitas(what.evaluator(), options, np.random.default_rng(s)) for s in range(seeds)]
    return 100 * statistics.fmean(r.counts["discriminatory"] / max(1, r.counts["generated"]) for r in found)


def share(what: Subject, sizes: Sizes) -> Iterator[Row]:
    """Return the share next to the literal algorithm."""
    outcomes = [literal(what, seed, sizes.seconds, **TRIALS) for seed in range(sizes.seeds)]
    theirs = 100 * statistics.fmean(o.share for o in outcomes)
    note = f"{sum(o.stopped for o in outcomes)} of {sizes.seeds} literal runs cut off"
    yield Row(f"aequitas share, {what.name}", our_share(what, sizes.seeds), "%", "literal", theirs, note)


def released_share(what: Subject, sizes: Sizes) -> Iterator[Row]:
    """Return the share next to the released script with as many trials."""
    runs = {
        signal: [literal(what, s, sizes.seconds, released, signal=signal, **TRIALS) for s in range(sizes.seeds)]
        for signal in ("released", "paper")
    }
    theirs, right = ([100 * o.share for o in outcomes] for outcomes in runs.values())
    cut = sum(o.stopped for outcomes in runs.values() for o in outcomes)
    yield Row(
        f"aequitas share, {TRIALS['global_n']:,} and {TRIALS['local_n']:,} trials, {what.name}",
        our_share(what, sizes.seeds), "%", "released", statistics.fmean(theirs),
        f"released {min(theirs):.0f} to {max(theirs):.0f} %; sign put right {statistics.fmean(right):.0f} %; "
        f"{cut} of {2 * sizes.seeds} runs cut off",
    )  # fmt: skip


def speed(what: Subject, sizes: Sizes) -> Iterator[Row]:
    """Return distinct finds per second at many generated cases."""
    baseline = literal(what, 0, sizes.seconds, **TRIALS)
    generated, began = sizes.generated, time.perf_counter()
    options = AequitasOptions.of({"trials": 0, "generated": generated, "global_n": generated // 2, "local_n": 10**6})
    counts = run_aequitas(what.evaluator(max_seconds=40), options, np.random.default_rng(0)).counts
    mine = counts["discriminatory"] / (time.perf_counter() - began)
    theirs = len(baseline.found) / max(baseline.seconds, 1e-9)
    note = f"{counts['discriminatory']:,} of {counts['generated']:,}"
    yield Row(f"aequitas found per second, {what.name}", mine, "/s", "literal", theirs, note)


# -- few calls -------------------------------------------------------------------------------------------


def judged(what: Subject, calls: int, rows: Codes) -> int:
    """Return the discriminatory cases among distinct ``rows``, asked one after another until ``calls``."""
    first = np.sort(np.unique(case_keys(what.schema, rows), return_index=True)[1])
    rows = rows[first][: calls // len(what.schema.combos)]
    return int(what.evaluator(cache=True).judge(rows).discriminatory.sum())


def searched(method: Callable[..., Any], what: Subject, calls: int, seed: int, options: OptionSet) -> int:
    """Return the discriminatory cases of a search that stops at ``calls``."""
    evaluator = what.evaluator(cache=True, max_evaluations=calls)
    result = method(evaluator, options, np.random.default_rng(seed), what.train)
    return int(result.counts["discriminatory"])


def slow(what: Subject, sizes: Sizes) -> Iterator[Row]:
    """Return calls per find of every method, next to the literal Aequitas."""
    calls, found, printed = sizes.calls, dict[str, int](), [0, 0]
    for seed in range(sizes.seeds):
        rng = np.random.default_rng(seed)
        theirs = literal(what, seed, 60.0, max_calls=calls, **SLOW_TRIALS)
        printed = [printed[0] + theirs.calls, printed[1] + len(theirs.found)]
        for name, finds in {
            "themis": judged(what, calls, uniform(what.schema, calls, rng)),
            "given rows": judged(what, calls, rng.permutation(what.train)),
            "aequitas": searched(run_aequitas, what, calls, seed, AequitasOptions.of({"trials": 0, **SLOW_TRIALS})),
            "sg": searched(run_sg, what, calls, seed, SgOptions(limit=calls)),
        }.items():
            found[name] = found.get(name, 0) + finds
    for name, finds in found.items():
        note = "; ".join(
            f"{who} found nothing: a lower bound" for who, n in ((name, finds), ("literal", printed[1])) if not n
        )
        each = sizes.seeds * calls / max(1, finds)
        baseline = printed[0] / max(1, printed[1])
        yield Row(
            f"calls per find, {calls} calls, {what.name}, {name}", each, "calls", "literal aequitas", baseline, note
        )


# -- SG --------------------------------------------------------------------------------------------------


def sg_search(
    what: Subject, rows: Codes | None, limit: int, seed: int, phases: Collection[str] = PHASES, **options: Any
) -> Search:
    """Return a finished search of this project's SG."""
    search = Search(
        what.evaluator(), SgOptions.of({"limit": limit, **options}), rows, np.random.default_rng(seed), phases
    )
    search.go()
    return search


def sg_literal(what: Subject, limit: int, seed: int) -> Any:
    """Run Algorithm 2 as printed."""
    from literal_sg import literal_sg

    low = np.array([c.low for c in what.schema.columns])
    return literal_sg(
        lambda rows: what.model.predict(rows + low), what.train.astype(np.int64), what.schema.cards.tolist(),
        int(what.schema.protected_index[0]), limit=limit, seed=seed,
    )  # fmt: skip


def sg(what: Subject, sizes: Sizes) -> Iterator[Row]:
    """Return found cases, distinct faults and CPU seconds; medians over seeds."""
    evaluator = what.evaluator()
    tree = Surrogate.of(what.train, evaluator.labels(what.train), np.random.default_rng(0))

    def faults(rows: Codes) -> int:
        return fault_count(tree, what.schema, rows, evaluator.judge(rows).labels) if len(rows) else 0

    figures = []  # found, faults, CPU seconds; ours and literal
    for seed in range(sizes.seeds):
        began = time.process_time()
        printed = sg_literal(what, sizes.limit, seed)
        middle = time.process_time()
        result = sg_search(what, what.train, sizes.limit, seed).result()
        spent = (time.process_time() - middle, middle - began)
        theirs = np.array(printed.rows, dtype=np.int32)
        found = (result.counts["discriminatory"], sum(printed.found.values()))
        figures.append((found, (faults(result.finds), faults(theirs)), spent))
    for name, unit, pairs in zip(
        ("discriminatory", "faults", "CPU time"), ("cases", "faults", "s"), zip(*figures, strict=True), strict=True
    ):
        mine, theirs_median = (float(np.median(side)) for side in zip(*pairs, strict=True))
        yield Row(f"sg {what.name}: {name} of {sizes.limit:,}", mine, unit, "literal", theirs_median)


def coverage(what: Subject, limit: int, *, held_out: bool = False) -> Row:
    """Return the paths of a surrogate tree that are taken, against uniform rows.

    As in the paper, the tree is fitted to the rows that are also the seeds. With ``held_out`` search and tree get different
    halves of the data.
    """
    given, held = (what.train[::2], what.train[1::2]) if held_out else (what.train, what.train)
    search, rng = sg_search(what, given, limit, 0, ("global",)), np.random.default_rng(0)
    surrogate = Surrogate.of(held, what.evaluator().labels(held), rng)
    plain, got = surrogate.paths(uniform(what.schema, limit, rng)), surrogate.paths(np.array(search.cases))
    every = int(surrogate.tree.get_n_leaves())
    most = min(limit, every) / plain if plain else 0.0  # all of the tree's paths, or one for each input
    note = f"the tree has {every}; its fidelity is {surrogate.fidelity:.3f}; no ratio above {most:.2f} is possible"
    name = f"sg {what.name}: paths taken by {limit:,}{', held out' if held_out else ''}"
    return Row(name, got, "paths", "uniform", plain, note)


def paths(what: Subject, sizes: Sizes) -> Iterator[Row]:
    """Return both coverages."""
    for held_out in (False, True):
        yield coverage(what, sizes.limit, held_out=held_out)


# -- Themis ----------------------------------------------------------------------------------------------


def themis_rows(what: Subject, sizes: Sizes) -> Iterator[Row]:
    """Return rows a second next to the bare predict (medians of three)."""
    cases = sizes.cases
    rows = what.schema.decode(uniform(what.schema, 2 * cases, np.random.default_rng(1)))
    tabular_plan.LEAST = cases
    ours, bare = [], []
    for run in range(3):
        start = time.process_time()
        result = themis.run(what.evaluator(), tabular_plan.ThemisOptions(max_samples=cases), np.random.default_rng(run))
        middle = time.process_time()
        for at in range(0, len(rows), 65536):
            what.model.predict(rows[at : at + 65536])
        ours.append(result.counts["evaluations"] / (middle - start))
        bare.append(len(rows) / (time.process_time() - middle))
    mine, theirs = statistics.median(ours), statistics.median(bare)
    yield Row(f"themis rows a second, {what.name}", mine, "/s CPU", "bare predict", theirs)


KINDS: dict[str, Callable[[Subject, Sizes], Iterator[Row]]] = {
    "share": share,
    "released": released_share,
    "speed": speed,
    "slow": slow,
    "sg": sg,
    "paths": paths,
    "themis": themis_rows,
}


def measure(quick: bool = False) -> Iterator[Row]:
    """Return two cells of each kind, with three models or one."""
    sizes = Sizes(seeds=1, seconds=2.0, calls=200, limit=60, generated=20_000, cases=50_000) if quick else Sizes()
    for cell in ("census/sex", "credit/age"):
        for model in ("LR",) if quick else ("LR", "DT", "MLP"):
            for kind in KINDS.values():
                yield from kind(subject(cell, model), sizes)


def main() -> None:
    """Measure what is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=CELLS)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    for cell in args.cells:
        for model in args.models:
            for kind in args.kinds:
                for row in KINDS[kind](subject(cell, model), Sizes(args.seeds)):
                    print(row.line(), flush=True)


if __name__ == "__main__":
    main()
