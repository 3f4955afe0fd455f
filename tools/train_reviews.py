r"""Train the embedded review classifier: TF-IDF over words and word pairs, logistic regression.

Nothing here knows about groups of people: the model learns what the film sentences hold.

1. A tenth of each class is held out by a fixed shuffle (seed 7) of the sorted sentences.
2. Five-fold cross-validation on the other nine tenths chooses ``min_df``, ``sublinear_tf`` and ``C``; the
   first of equals, in the order of `GRID`, wins.
3. The chosen settings are fitted on the nine tenths and measured once on the held-out tenth.
4. One tenth is a small sample: the same settings are also fitted and measured on fifteen other splits
   (`OTHER_SEEDS`), whose mean says better what to expect. None of these models is kept.

Usage::

    python tools/train_reviews.py --corpus sentence_polarity.zip --long imdb_sample.csv \
        --out auditor/embedded/reviews

The corpus is the sentence polarity dataset v1.0 (Pang & Lee, ACL 2005; CC BY 4.0, as nltk_data ships it).
``--long`` is a CSV file with the columns ``text`` and ``label``: whole reviews, only measured, never
trained on.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import itertools
import json
import random
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
import sklearn
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from auditor.models.offline import WORD, Reviews, normalise

SEED = 7
OTHER_SEEDS = range(100, 115)
GRID = {"min_df": (2, 3), "sublinear_tf": (False, True), "C": (1.0, 3.0, 10.0)}
PROBES = (
    "A warm, funny film with a wonderful cast.",
    "Dull, overlong and badly acted; I wanted my money back.",
    "My sister and her husband watched it twice.",
    "It doesn\u2019t work \u2014 not even for one good joke!",
    "",
)


def read_corpus(path: Path) -> tuple[list[str], list[str]]:
    """Read the positive and the negative sentences.

    The files are UTF-8 although the data set's notes speak of ISO-8859-1: every byte sequence above 127
    is valid UTF-8, and read as ISO-8859-1 accented words fall apart.
    """
    with zipfile.ZipFile(path) as archive:
        texts = [archive.read(f"sentence_polarity/rt-polarity.{end}").decode("utf-8") for end in ("pos", "neg")]
    positive, negative = ([line.strip() for line in text.split("\n") if line.strip()] for text in texts)
    return positive, negative


def split(
    positive: Sequence[str], negative: Sequence[str], seed: int = SEED
) -> tuple[list[str], list[int], list[str], list[int]]:
    """Nine tenths and a tenth: texts and labels (1 positive) of each."""
    rng = random.Random(seed)
    train: list[tuple[str, int]] = []
    held: list[tuple[str, int]] = []
    for label, texts in ((1, positive), (0, negative)):
        ordered = sorted(texts)
        rng.shuffle(ordered)
        cut = round(len(ordered) / 10)
        held += [(text, label) for text in ordered[:cut]]
        train += [(text, label) for text in ordered[cut:]]
    return [t for t, _ in train], [y for _, y in train], [t for t, _ in held], [y for _, y in held]


def pipeline(*, min_df: int, sublinear_tf: bool, C: float) -> Pipeline:
    """Build the scikit-learn model that the weights file stands for.

    The solver is newton-cg because it reaches the optimum: lbfgs stops earlier, at a point that depends on
    the number of threads (probabilities differed by 3e-6), so a second training gave other weights.
    """
    vectorizer = TfidfVectorizer(
        preprocessor=normalise, token_pattern=WORD, ngram_range=(1, 2), min_df=min_df, sublinear_tf=sublinear_tf
    )
    return Pipeline(
        [("terms", vectorizer), ("regression", LogisticRegression(C=C, solver="newton-cg", tol=1e-10, max_iter=1000))]
    )


def choose(texts: Sequence[str], labels: Sequence[int]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Choose the settings with the highest mean accuracy over five folds, and the whole table."""
    x, y = np.array(texts, dtype=object), np.array(labels)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=SEED).split(x, y))
    table = []
    for values in itertools.product(*GRID.values()):
        settings = dict(zip(GRID, values, strict=True))
        scores = [float((pipeline(**settings).fit(x[a], y[a]).predict(x[b]) == y[b]).mean()) for a, b in folds]
        table.append({**settings, "accuracy": round(float(np.mean(scores)), 4)})
        print(table[-1], flush=True)
    best = max(table, key=lambda row: row["accuracy"])
    return {name: best[name] for name in GRID}, table


def export(model: Pipeline, documents: Sequence[str], path: Path) -> None:
    """Write the weights of a fitted `pipeline` as gzipped, tab-separated text (the same bytes each time)."""
    vectorizer, regression = model["terms"], model["regression"]
    names = vectorizer.get_feature_names_out()
    # idf = ln((1 + N) / (1 + d)) + 1, solved for the count, which is exact where the logarithm is not.
    counts = np.rint((1 + len(documents)) / np.exp(vectorizer.idf_ - 1) - 1).astype(int)
    header = {
        "format": "auditor-reviews-1",
        "documents": len(documents),
        "intercept": round(float(regression.intercept_[0]), 10),
        "sublinear_tf": bool(vectorizer.sublinear_tf),
        "labels": ["negative", "positive"],
    }
    lines = [json.dumps(header, sort_keys=True)]
    for name, count, weight in sorted(zip(names, counts, regression.coef_[0], strict=True)):
        lines.append(f"{name}\t{count}\t{weight:.8f}")
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode("utf-8"), compresslevel=9, mtime=0))


def accuracy(right: Sequence[bool]) -> dict[str, Any]:
    """Share, count and exact 95 % interval (Clopper & Pearson)."""
    n, k = len(right), sum(right)
    interval = scipy.stats.binomtest(k, n).proportion_ci(0.95, method="exact")
    return {"accuracy": round(k / n, 4), "low": round(interval.low, 4), "high": round(interval.high, 4), "n": n}


def other_splits(positive: Sequence[str], negative: Sequence[str], settings: dict[str, Any]) -> dict[str, Any]:
    """Held-out accuracy of the same settings on other random splits."""
    values = []
    for seed in OTHER_SEEDS:
        train, labels, held, expected = split(positive, negative, seed)
        predicted = pipeline(**settings).fit(train, labels).predict(held)
        values.append(float((predicted == np.array(expected)).mean()))
    return {
        "n": len(values),
        "mean": round(float(np.mean(values)), 4),
        "low": round(min(values), 4),
        "high": round(max(values), 4),
    }


def read_long(path: Path) -> list[tuple[str, int]]:
    """Whole reviews with 1 for a positive label."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [(row["text"], int(row["label"].strip().lower() in {"1", "pos", "positive"})) for row in rows]


def main() -> None:
    """Train, measure, write weights.tsv.gz and figures.json."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--long", type=Path)
    options = parser.parse_args()

    positive, negative = read_corpus(options.corpus)
    train, labels, held, expected = split(positive, negative)
    settings, table = choose(train, labels)
    model = pipeline(**settings).fit(train, labels)
    options.out.mkdir(parents=True, exist_ok=True)
    weights = options.out / "weights.tsv.gz"
    export(model, train, weights)

    embedded = Reviews(weights=weights)
    right = [(embedded.probability(text) >= 0.5) == bool(label) for text, label in zip(held, expected, strict=True)]
    difference = max(
        abs(embedded.probability(t) - p) for t, p in zip(held, model.predict_proba(held)[:, 1], strict=True)
    )
    figures = {
        "corpus": "sentence polarity dataset v1.0, Pang & Lee 2005, CC BY 4.0",
        "corpus_sha256": hashlib.sha256(options.corpus.read_bytes()).hexdigest(),
        "sentences": {"positive": len(positive), "negative": len(negative)},
        "train": len(train),
        "settings": settings,
        "cross_validation": table,
        "held_out": accuracy(right),
        "other_splits": other_splits(positive, negative, settings),
        "long_reviews": None,
        "terms": len(model["terms"].vocabulary_),
        "weights_bytes": weights.stat().st_size,
        "largest_difference_from_scikit_learn": float(f"{difference:.1e}"),
        "probes": [{"text": t, "positive": float(model.predict_proba([t])[0, 1])} for t in PROBES],
        "versions": {"scikit-learn": sklearn.__version__, "numpy": np.__version__},
    }
    if options.long:
        rows = read_long(options.long)
        figures["long_reviews"] = accuracy([(embedded.probability(t) >= 0.5) == bool(y) for t, y in rows])
    (options.out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
