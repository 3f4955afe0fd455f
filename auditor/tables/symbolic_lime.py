"""LIME's neighbourhoods over integer codes, from one explainer that is built once and kept.

`lime.lime_tabular.LimeTabularExplainer` holds the statistics (values and frequencies of nominal columns,
scale of numeric ones). Its own sampler draws column by column with Python loops; here the same
distributions are drawn for all columns at once: a nominal column's value is that of a random training row,
which is its training frequency exactly; a numeric column is normal with the training scale, around the
input (``around``) as LIME does with ``sample_around_instance``, then rounded and kept within the domain.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auditor.core.errors import MissingDependency
from auditor.tables.schema import Codes, Schema

PACKAGES = {"lime": "lime", "sklearn": "scikit-learn"}


def optional(module: str) -> Any:
    """A module of the extra ``tabular``; raises `MissingDependency`."""
    try:
        return import_module(module)
    except ImportError as error:
        package = PACKAGES.get(module.split(".")[0], module)
        raise MissingDependency("--method sg", package, "tabular") from error


def ordered_columns(schema: Schema) -> NDArray[np.intp]:
    """Columns whose neighbouring codes are neighbouring values, by position."""
    return np.array([j for j, c in enumerate(schema.columns) if c.ordered and c.codes > 2], dtype=np.intp)


class Neighbourhood:
    """Draws rows as LIME does.

    Parameters
    ----------
    schema : Schema
        The domain.
    data : array of int32, shape (n, d)
        Rows that LIME takes its statistics from.
    around : bool
        Whether ordered columns are drawn from a normal around the input; otherwise every column is nominal
        to LIME and neighbourhoods do not depend on the input at all.
    rng : numpy.random.Generator
        The source of randomness.

    Attributes
    ----------
    explainer : lime.lime_tabular.LimeTabularExplainer
        The kept explainer.
    """

    def __init__(self, schema: Schema, data: Codes, *, around: bool, rng: np.random.Generator) -> None:
        tabular = optional("lime.lime_tabular")
        numeric = ordered_columns(schema) if around else np.array([], dtype=np.intp)
        numeric = numeric[np.ptp(data[:, numeric], axis=0) > 0] if len(numeric) else numeric
        self._numeric = numeric
        self.explainer: Any = tabular.LimeTabularExplainer(
            data.astype(np.float64),
            feature_names=list(schema.names),
            categorical_features=[j for j in range(schema.d) if j not in set(numeric.tolist())],
            discretize_continuous=False,
            sample_around_instance=True,
            random_state=int(rng.integers(2**31)),
        )
        self._scale = np.asarray(self.explainer.scaler.scale_, dtype=np.float32)[numeric]
        self._high = (schema.cards - 1)[numeric]
        self._nominal = np.array(
            [j for j in range(schema.d) if j not in set(numeric.tolist())], dtype=np.intp
        )
        self._columns = np.ascontiguousarray(data[:, self._nominal].T).reshape(-1)
        self._starts = np.arange(len(self._nominal)) * len(data)
        self._n, self._d, self._rng = len(data), schema.d, rng

    def draw(self, row: Codes, samples: int) -> Codes:
        """The neighbourhood of ``row``, shape (samples, d); its first row is ``row`` itself."""
        rows = np.empty((samples, self._d), dtype=np.int32)
        kind: Any = np.uint16 if self._n <= 2**16 else np.uint32
        picks = self._rng.integers(0, self._n, (samples, len(self._nominal)), dtype=kind)
        rows[:, self._nominal] = self._columns[picks + self._starts]
        if len(self._numeric):
            normal = self._rng.standard_normal((samples, len(self._numeric)), dtype=np.float32)
            values = np.rint(normal * self._scale + row[self._numeric])
            rows[:, self._numeric] = np.clip(values, 0, self._high)
        rows[0] = row
        return rows
