"""Where SG's search starts (Algorithm 2, `seed_test_input`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from auditor.tables.evaluate import uniform
from auditor.tables.schema import Codes, Schema
from auditor.tables.symbolic_lime import optional


def round_robin(clusters: NDArray[np.integer], limit: int) -> NDArray[np.intp]:
    """Positions of rows, one from each cluster in turn, each cluster in row order; at most ``limit``.

    Examples
    --------
    >>> round_robin(np.array([0, 0, 0, 1, 2, 1]), 5).tolist()
    [0, 3, 4, 1, 5]
    """
    turn = np.empty(len(clusters), dtype=np.int64)
    for cluster in np.unique(clusters):
        members = np.flatnonzero(clusters == cluster)
        turn[members] = np.arange(len(members))
    return np.lexsort((clusters, turn))[:limit]


def seeds(
    schema: Schema,
    data: Codes | None,
    *,
    source: str,
    clusters: int,
    limit: int,
    rng: np.random.Generator,
) -> Codes:
    """Seed rows in the order in which they are tried, shape (k, d) with k <= limit.

    Parameters
    ----------
    data : array of int32, shape (n, d), or None
        The given rows.
    source : {"clusters", "data", "random"}
        K-means clusters of the rows in turn (the paper); the rows in random order; or rows drawn uniformly
        from the domain.
    clusters : int
        For ``clusters``.
    """
    if source == "random" or data is None or not len(data):
        rows = uniform(schema, 4 * limit if schema.constraints else limit, rng)
        return rows[schema.on_manifold(rows)][:limit]
    if source == "data":
        return data[rng.permutation(len(data))[:limit]]
    distinct = min(clusters, len(np.unique(data, axis=0)))
    kmeans = optional("sklearn.cluster").KMeans(
        n_clusters=distinct, n_init=1, random_state=int(rng.integers(2**31))
    )
    return data[round_robin(kmeans.fit_predict(data.astype(np.float64)), limit)]
