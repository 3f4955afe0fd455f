"""Repair by retraining, measured: what ASTRAEA's RQ3 and RQ4 do, on a small review classifier.

1. A TF-IDF logistic regression is trained on film-review sentences.
2. A grammar audit of it finds cases in which swapping one occupation for another changes the label, and its
   diagnosis names the occupations with the highest rates.
3. `auditor.run.augment` takes texts of those cases with their right labels; samples of several sizes join the
   training data, several retrainings for each size. The same number of generated sentences *not* chosen
   by violations is the comparison: more data of this kind alone may help too.
4. Each retrained model answers fresh generated cases, none of them trained on, unseen Winogender sentences with the
   diagnosed occupations put in, and held-out reviews.

Usage::

    python examples/retrain_reviews.py --corpus sentence_polarity.zip --winogender templates.tsv

The corpus is the sentence polarity dataset v1.0 (Pang & Lee, ACL 2005); the templates are Winogender's (Rudinger
et al., NAACL 2018). Needs scikit-learn: pip install "llm-bias-auditor[tabular]"
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auditor import audit
from auditor.perturb.grammar import load as load_grammar
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.run.augment import augment
from auditor.store.folder import RunFolder

GRAMMAR = "sentiment:gendered-occupation"
HELD_OUT = 0.2
TEMPLATE_SWAPS = 8  # other occupations tried for each diagnosed one in each Winogender sentence
PRONOUNS = {"$NOM_PRONOUN": "they", "$POSS_PRONOUN": "their", "$ACC_PRONOUN": "them"}
Labelled = list[tuple[str, str]]


def reviews(path: Path) -> tuple[Labelled, Labelled]:
    """Training and held-out sentences, split by a fixed shuffle."""
    rows = []
    with zipfile.ZipFile(path) as packed:
        for ending, label in (("neg", "negative"), ("pos", "positive")):
            text = packed.read(f"sentence_polarity/rt-polarity.{ending}").decode("latin-1")
            rows += [(line.strip(), label) for line in text.splitlines() if line.strip()]
    random.Random(7).shuffle(rows)
    cut = round(len(rows) * HELD_OUT)
    return rows[cut:], rows[:cut]


class Classifier:
    """The model under test: text → "positive" or "negative"."""

    def __init__(self, rows: Labelled) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        self.vectors = TfidfVectorizer(sublinear_tf=True, min_df=2)
        self.model = LogisticRegression(C=4.0, solver="liblinear")
        self.model.fit(self.vectors.fit_transform([t for t, _ in rows]), [label for _, label in rows])

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """Label texts."""
        return [str(label) for label in self.model.predict(self.vectors.transform(texts))]


def generated(n: int, seed: int, tokens: Sequence[str] | None = None) -> tuple[list[tuple[str, str]], list[str]]:
    """Fresh pairs (original, variant) and their right labels; with ``tokens`` only pairs that hold one."""
    suite = GrammarSuite(grammar=GRAMMAR, generation="rand", cases=20 * n, pairs=True, seed=seed)
    rng, pairs, labels = random.Random(0), [], []
    while len(pairs) < n and (cases := suite.ask(1000, rng)):
        for case in cases:
            texts = str(case.original.input), str(case.variants[0].input)
            if tokens is None or any(t in text.lower() for t in tokens for text in texts):
                pairs.append(texts)
                labels.append(case.label or "")
    return pairs[:n], labels[:n]


def winogender(path: Path, tokens: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of Winogender sentences: a diagnosed occupation, and one of the other group in its place."""
    with path.open(encoding="utf-8", newline="") as file:
        templates = list(csv.DictReader(file, delimiter="\t"))
    rule = load_grammar(GRAMMAR).rules["occupation"]
    group = {t.text: t.group for t in rule.terminals}
    pairs = []
    for token in tokens:
        others = [t.text for t in rule.terminals if t.group != group[token]]
        step = max(1, len(others) // TEMPLATE_SWAPS)
        for row in templates:
            texts = [_fill(row, term) for term in (token, *others[::step][:TEMPLATE_SWAPS])]
            pairs += [(texts[0], other) for other in texts[1:]]
    return pairs


def _fill(row: dict[str, str], term: str) -> str:
    text = row["sentence"].replace("$PARTICIPANT", row["other-participant(1)"])
    for name, word in PRONOUNS.items():
        text = text.replace(name, word)
    text = text.replace("The $OCCUPATION", term[0].upper() + term[1:]).replace("the $OCCUPATION", term)
    return text.replace("$OCCUPATION", term.removeprefix("the ")).replace("they was", "they were")


def changed(model: Classifier, pairs: Sequence[tuple[str, str]]) -> float:
    """Share of pairs whose labels differ."""
    first, second = (model([p[i] for p in pairs]) for i in (0, 1))
    return sum(a != b for a, b in zip(first, second, strict=True)) / len(pairs)


def accuracy(model: Classifier, rows: Labelled) -> float:
    """Share of right labels."""
    return sum(a == label for a, (_, label) in zip(model([t for t, _ in rows]), rows, strict=True)) / len(rows)


def measure(model: Classifier, tests: dict[str, Any]) -> dict[str, float]:
    """The figures of one model."""
    pairs, labels = tests["generated"]
    return {
        "generated_changed": changed(model, pairs),
        "generated_accuracy": accuracy(model, [(p[0], label) for p, label in zip(pairs, labels, strict=True)]),
        "winogender_changed": changed(model, tests["winogender"]),
        "reviews_accuracy": accuracy(model, tests["reviews"]),
    }


def main() -> None:
    """Train, audit, retrain, measure; print JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--winogender", type=Path, required=True)
    parser.add_argument("--top", type=int, default=5)
    parser.add_argument("--cases", type=int, default=6000, help="cases of the audit")
    parser.add_argument("--shares", default="0.25,1,5,10", help="percent of the training rows")
    parser.add_argument("--retrainings", type=int, default=10)
    options = parser.parse_args()
    train, held_out = reviews(options.corpus)
    base = Classifier(train)
    with tempfile.TemporaryDirectory() as out:
        result = audit(
            "sentiment", model=base, suite="grammar", grammar=GRAMMAR, protocol="astraea", limit=options.cases, out=out
        )
        assert result.path is not None
        with RunFolder.open(result.path) as folder:
            found = augment(folder, top=options.top)
    used = {row.text for row in found.rows}
    plain, plain_labels = generated(len(used), 11, found.tokens)
    used |= {text for pair in plain for text in pair}
    pairs, labels = generated(3000, 12, found.tokens)
    kept = [i for i, pair in enumerate(pairs) if not used & set(pair)]
    tests = {
        "generated": ([pairs[i] for i in kept], [labels[i] for i in kept]),
        "winogender": winogender(options.winogender, found.tokens),
        "reviews": held_out,
    }
    pools = {
        "violations": [(row.text, row.label) for row in found.rows],
        "random": [(text, label) for pair, label in zip(plain, plain_labels, strict=True) for text in pair],
    }
    report: dict[str, Any] = {
        "words": found.tokens,
        "training_rows": len(train),
        "available": {name: len(pool) for name, pool in pools.items()},
        "pairs": {"generated": len(kept), "winogender": len(tests["winogender"])},
        "before": measure(base, tests),
        "after": [],
    }
    for share in map(float, options.shares.split(",")):
        for name, pool in pools.items():
            size = min(len(pool), max(1, round(len(train) * share / 100)))
            runs = []
            for k in range(options.retrainings):
                more = random.Random(f"{name}:{share}:{k}").sample(pool, size)
                runs.append(measure(Classifier(train + more), tests))
            report["after"].append(
                {"share": share, "rows": size, "from": name}
                | {
                    key: [
                        statistics.mean(r[key] for r in runs),
                        statistics.stdev([r[key] for r in runs]) if len(runs) > 1 else None,
                    ]
                    for key in runs[0]
                }
            )
            sys.stderr.write(f"{name} {share:g} %: done\n")
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
