"""Coded Adult and German credit with scikit-learn models: what the tabular benchmarks test."""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import SHARED, shared
from numpy.typing import NDArray

from auditor.tables.columns import Column
from auditor.tables.row_schema import Schema

CENSUS = "age workclass fnlwgt education marital occupation relationship race sex gain loss hours country"
CENSUS_BOUNDS = [
    (1, 9), (0, 7), (0, 39), (0, 15), (0, 6), (0, 13), (0, 5), (0, 4), (0, 1), (0, 99), (0, 39),
    (0, 99), (0, 39),
]  # fmt: skip
CENSUS_ORDERED = "age fnlwgt education gain loss hours"
CREDIT = (
    "checking duration history purpose amount savings employment instalment sex parties residence property "
    "age plans housing existing job dependents telephone foreign"
)
CREDIT_BOUNDS = [
    (0, 3), (1, 80), (0, 4), (0, 10), (1, 200), (0, 4), (0, 4), (1, 4), (0, 1), (0, 2), (1, 4), (0, 3), 
    (1, 8), (0, 2), (0, 2), (1, 4), (0, 3), (1, 2), (0, 1), (0, 1),
]  # fmt: skip
CREDIT_ORDERED = "checking duration amount savings employment instalment residence age existing dependents"
MODELS = ("LR", "DT", "MLP", "RF", "SVM")
SVM_ROWS = 3000  # a support vector machine on all of Adult takes minutes to fit


@dataclass(frozen=True)
class Subject:
    """One data set, its schema, its model."""

    name: str
    schema: Schema
    model: Any
    train: NDArray[np.int32]
    labels: NDArray[np.int64]

    @property
    def given(self) -> NDArray[np.int32]:
        """The training rows."""
        return self.train


def available() -> bool:
    """Whether the shared data are there."""
    return (SHARED / "adult" / "census_coded.csv.gz").exists()


@lru_cache(maxsize=4)
def table(name: str) -> tuple[Schema, NDArray[np.int32], NDArray[np.int64]]:
    """Schema (nothing protected), codes and labels; rows outside the domain of the papers are left out."""
    census = name == "census"
    names, bounds = (CENSUS, CENSUS_BOUNDS) if census else (CREDIT, CREDIT_BOUNDS)
    ordered = CENSUS_ORDERED if census else CREDIT_ORDERED
    columns = tuple(
        Column(name=n, kind="integer", codes=high - low + 1, low=low, ordered=n in ordered.split())
        for n, (low, high) in zip(names.split(), bounds, strict=True)
    )
    schema = Schema(columns=columns, target="label", name=name)
    if census:
        with gzip.open(shared("adult/census_coded.csv.gz"), "rt") as file:
            raw = np.array(list(csv.reader(file))[1:], dtype=np.int64)
    else:
        with shared("german/credit_sample_adf.csv").open() as file:
            raw = np.array(list(csv.reader(file))[1:], dtype=np.int64)
    low, high = np.array(bounds).T
    inside = ((raw[:, :-1] >= low) & (raw[:, :-1] <= high)).all(axis=1)
    return schema, (raw[inside, :-1] - low).astype(np.int32), raw[inside, -1]


def estimator(kind: str) -> Any:
    """An unfitted model: scikit-learn's defaults, but a larger limit of iterations where they warn."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    return {
        "LR": lambda: LogisticRegression(max_iter=5000),
        "DT": lambda: DecisionTreeClassifier(random_state=0),
        "MLP": lambda: MLPClassifier((64, 32), random_state=0, max_iter=300),
        "RF": lambda: RandomForestClassifier(random_state=0),
        "SVM": lambda: SVC(random_state=0),
    }[kind]()


@lru_cache(maxsize=32)
def _fitted(name: str, kind: str) -> tuple[Any, NDArray[np.int32], NDArray[np.int64]]:
    import warnings

    from sklearn.model_selection import train_test_split

    schema, codes, labels = table(name)
    train, _, y, _ = train_test_split(codes, labels, test_size=0.2, stratify=labels, random_state=0)
    model = estimator(kind)
    rows = slice(SVM_ROWS) if kind == "SVM" else slice(None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(schema.decode(train[rows]), y[rows])
    return model, train, y


def subject(name: str, protected: str, kind: str) -> Subject:
    """A fitted model with one protected column (``sex``, ``race``, ``age``)."""
    model, train, y = _fitted(name, kind)
    return Subject(f"{name}/{protected} {kind}", table(name)[0].protecting([protected]), model, train, y)
