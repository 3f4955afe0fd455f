"""SG: Algorithm 2 as printed against this project's, side by side, on coded Adult and German credit.

Usage::

    python benchmarks/tabular_sg.py [--limit 1000] [--cells census/sex/LR …] [--seeds 1]

``quick`` (the default of `measure`) has 300 cases and three cells; ``--limit 1000 --cells all`` is the
published setting: 1,000 cases, twelve cells. Seconds are CPU time of this process.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Collection, Sequence

import numpy as np
from common import Row, shared
from literal_sg import literal_sg
from surrogate import Surrogate, fault_count

from auditor.tables.coded import uniform
from auditor.tables.columns import Column
from auditor.tables.evaluate import Evaluator
from auditor.tables.method_options import SgOptions
from auditor.tables.row_schema import Schema
from auditor.tables.sg import PHASES, Search

FILES = {"census": "adult/census_coded.csv.gz", "credit": "german/credit_sample_adf.csv"}
# Domains as Aequitas and ADF state them: low and high of each column.
BOUNDS = {
    "census": "1-9 0-7 0-39 0-15 0-6 0-13 0-5 0-4 0-1 0-99 0-39 0-99 0-39",
    "credit": "0-3 1-80 0-4 0-10 1-200 0-4 0-4 1-4 0-1 0-2 1-4 0-3 1-8 0-2 0-2 1-4 0-3 1-2 0-1 0-1",
}
NUMERIC = {"census": (0, 2, 9, 10, 11), "credit": (1, 4, 7, 10, 12, 15, 17)}
PROTECTED = {"census": {"race": 7, "sex": 8}, "credit": {"gender": 8, "age": 12}}
CELLS = tuple(
    f"{c}/{m}" for c in ("census/sex", "census/race", "credit/gender", "credit/age") for m in ("LR", "DT", "MLP")
)
SVM_ROWS = 3000
QUICK = ("census/sex/LR", "census/race/DT", "credit/gender/MLP")


def load(data: str, protected: str) -> tuple[Schema, np.ndarray, np.ndarray, np.ndarray]:
    """Schema, codes of the rows within the domain, and all raw rows with their labels."""
    raw = np.loadtxt(shared(FILES[data]), delimiter=",", skiprows=1, dtype=np.int64)
    x, y = raw[:, :-1], raw[:, -1]
    columns = []
    for j, bounds in enumerate(BOUNDS[data].split()):
        low, high = map(int, bounds.split("-"))
        columns.append(
            Column(
                name=chr(97 + j),
                kind="integer",
                codes=high - low + 1,
                low=low,
                protected=j == PROTECTED[data][protected],
                ordered=j in NUMERIC[data],
            )
        )
    schema = Schema(columns=tuple(columns), name=data)
    codes = np.stack([c.encode(x[:, j]) for j, c in enumerate(columns)], axis=1)
    return schema, codes[(codes >= 0).all(axis=1)], x, y


def train(kind: str, x: np.ndarray, y: np.ndarray) -> object:
    """The subjects: scikit-learn defaults, fixed seeds, 80 % of the rows."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    x, _, y, _ = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
    model = {
        "LR": lambda: LogisticRegression(max_iter=5000, random_state=0),
        "DT": lambda: DecisionTreeClassifier(random_state=0),
        "RF": lambda: RandomForestClassifier(random_state=0),
        "MLP": lambda: MLPClassifier((64, 32), random_state=0),
        "SVM": lambda: SVC(random_state=0),
    }[kind]()
    if kind == "SVM":  # fitting all of Adult takes minutes, and each question then costs a millisecond
        x, y = x[:SVM_ROWS], y[:SVM_ROWS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(x, y)


def ours(
    predict: Callable,
    schema: Schema,
    codes: np.ndarray | None,
    limit: int,
    seed: int,
    phases: Collection[str] = PHASES,
    **options: object,
) -> tuple[int, float, dict, np.ndarray]:
    """Found, CPU seconds of the search, details and found codes of this project's SG."""
    began = time.process_time()
    read = SgOptions.of({"limit": limit, **options})
    search = Search(Evaluator(predict, schema), read, codes, np.random.default_rng(seed), phases)
    search.go()
    spent = time.process_time() - began
    result = search.result()
    return result.counts["discriminatory"], spent, {**result.details, **result.counts}, result.finds


def cell(name: str, limit: int, seeds: Sequence[int]) -> list[Row]:
    """One cell of the table: found and seconds, theirs and ours, and faults on one surrogate tree."""
    data, protected, kind = name.split("/")
    schema, codes, x, y = load(data, protected)
    predict = train(kind, x, y).predict
    low = np.array([c.low for c in schema.columns])
    evaluator = Evaluator(predict, schema)
    tree = Surrogate.of(codes, evaluator.labels(codes), np.random.default_rng(0))

    def faults(rows: np.ndarray) -> int:
        return fault_count(tree, schema, rows, evaluator.judge(rows).labels) if len(rows) else 0

    theirs_found, theirs_s, theirs_faults, our_found, our_s, our_faults = [], [], [], [], [], []
    for seed in seeds:
        began = time.process_time()
        out = literal_sg(
            lambda rows: predict(rows + low),
            codes.astype(np.int64),
            schema.cards.tolist(),
            int(schema.protected_index[0]),
            limit=limit,
            seed=seed,
        )
        theirs_s.append(time.process_time() - began)
        theirs_found.append(sum(out.found.values()))
        theirs_faults.append(faults(np.array(out.rows, dtype=np.int32)))
        found, spent, _, rows = ours(predict, schema, codes, limit, seed)
        our_faults.append(faults(rows))
        our_found.append(found)
        our_s.append(spent)
    a, b = float(np.median(our_found)), float(np.median(theirs_found))
    s, t = float(np.median(our_s)), float(np.median(theirs_s))
    f, g = float(np.median(our_faults)), float(np.median(theirs_faults))
    runs = len(seeds)
    each = f"each run {our_found}, literal {theirs_found}" if runs > 1 else ""
    return [
        Row(f"sg {name}: discriminatory of {limit:,}", a, "cases", runs, "literal", b, a / b if b else None, each),
        Row(f"sg {name}: distinct faults", f, "faults", runs, "literal", g, f / g if g else None),
        Row(f"sg {name}: CPU time", s, "s", runs, "literal", t, t / s, "ratio = times as fast"),
    ]


def coverage(name: str, limit: int, held_out: bool = False) -> Row:
    """Paths of a surrogate tree that seeds and global search take, against uniform sampling (Table 7).

    As in the paper, the tree is fitted to the rows that are also the seeds. With ``held_out`` search and tree
    get different halves of the data.
    """
    data, protected, kind = name.split("/")
    schema, codes, x, y = load(data, protected)
    predict = train(kind, x, y).predict
    evaluator, rng = Evaluator(predict, schema), np.random.default_rng(0)
    given, held = (codes[::2], codes[1::2]) if held_out else (codes, codes)
    search = Search(evaluator, SgOptions(limit=limit), given, np.random.default_rng(0), ("global",))
    search.go()
    surrogate = Surrogate.of(held, evaluator.labels(held), rng)
    plain, got = surrogate.paths(uniform(schema, limit, rng)), surrogate.paths(np.array(search.cases))
    every = int(surrogate.tree.get_n_leaves())
    most = min(limit, every) / plain if plain else 0.0  # all of the tree's paths, or one for each input
    note = f"the tree has {every}; its fidelity is {surrogate.fidelity:.3f}; no ratio above {most:.2f} is possible"
    ratio = got / plain if plain else None
    return Row(f"sg {name}: paths taken by {limit:,}", got, "paths", 1, "uniform", plain, ratio, note)


def measure(limit: int = 300, cells: Sequence[str] = QUICK, seeds: Sequence[int] = (0,)) -> list[Row]:
    """All figures; quick by default."""
    rows: list[Row] = []
    for name in cells:
        rows += cell(name, limit, seeds)
        rows += [coverage(name, limit), coverage(name, limit, held_out=True)]
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=300)
    parser.add_argument("--cells", nargs="*", default=list(QUICK))
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    for one in CELLS if args.cells == ["all"] else args.cells:
        for row in measure(args.limit, [one], range(args.seeds)):
            beside = f"{row.baseline:.4g}" if row.baseline is not None else ""
            ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
            print(f"{row.name:50} {row.value:10.4g} {row.unit:6} literal/uniform {beside:>8} x{ratio} {row.note}")
