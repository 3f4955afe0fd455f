"""Paths, boxes and their solutions: SG's `get_path` and `solve`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.tables.columns import Column
from auditor.tables.row_schema import Schema
from auditor.tables.sg_paths import Box, PathGrower, Predicate

CARDS = (4, 3, 5)
QUICK = settings(max_examples=60, deadline=None)


def schema_of(cards: tuple[int, ...] = CARDS, *rules: str) -> Schema:
    names = "abcdefgh"
    return Schema(
        columns=tuple(
            Column(name=names[j], kind="integer", codes=card, protected=j == 0, ordered=True)
            for j, card in enumerate(cards)
        ),
        constraints=rules,
    )


@st.composite
def predicates(draw: st.DrawFn) -> list[Predicate]:
    some = st.integers(0, 2).flatmap(
        lambda j: st.builds(Predicate, st.just(j), st.booleans(), st.integers(0, CARDS[j] - 2))
    )
    return draw(st.lists(some, max_size=6))


rows = st.tuples(*(st.integers(0, c - 1) for c in CARDS)).map(lambda t: np.array(t, dtype=np.int32))
everything = np.array(list(itertools.product(*map(range, CARDS))), dtype=np.int32)


def gini_score(labels: np.ndarray, left: np.ndarray) -> float:
    total = 0.0
    for side in (labels[left], labels[~left]):
        total += sum((side == c).sum() ** 2 for c in np.unique(labels)) / len(side)
    return total


@given(st.integers(0, 2**32 - 1))
@QUICK
def test_each_decision_is_a_best_split_of_its_node_and_the_end_is_pure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = rng.integers(0, CARDS, (60, 3)).astype(np.int32)
    labels = rng.integers(0, rng.integers(2, 6), 60)
    row = data[0]
    path = PathGrower(CARDS, rng).grow(row, data, labels)
    for p in path:
        best = max(gini_score(labels, data[:, j] <= cut) for j in range(3) for cut in np.unique(data[:, j])[:-1])
        assert gini_score(labels, data[:, p.column] <= p.cut) == pytest.approx(best)
        assert p.holds(row[None])[0]
        kept = p.holds(data)
        assert p.confidence == pytest.approx(kept.mean())
        data, labels = data[kept], labels[kept]
    assert len(np.unique(labels)) == 1 or len(np.unique(data, axis=0)) == 1


def test_the_path_is_that_of_the_whole_tree() -> None:
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(3)
    cards = (30, 20, 25)
    data = rng.integers(0, cards, (1000, 3)).astype(np.int32)
    labels = np.where(data[:, 0] > 11, (data[:, 1] > 6).astype(int), 2 * (data[:, 2] > 17))
    grower = PathGrower(cards, rng)
    fitted = tree.DecisionTreeClassifier(random_state=0).fit(data, labels).tree_
    for row in data[:40]:
        expected, node = [], 0
        while fitted.children_left[node] != -1:
            j, threshold = int(fitted.feature[node]), float(fitted.threshold[node])
            below = bool(row[j] <= threshold)
            child = (fitted.children_left if below else fitted.children_right)[node]
            share = fitted.n_node_samples[child] / fitted.n_node_samples[node]
            expected.append(Predicate(j, below, int(np.floor(threshold)), float(share)))
            node = child
        assert grower.grow(row, data, labels) == tuple(expected)


@given(predicates(), rows)
@QUICK
def test_the_closed_form_solves_and_is_nearest(path: list[Predicate], row: np.ndarray) -> None:
    satisfying = everything[np.all([p.holds(everything) for p in path], axis=0)] if path else everything
    solution = Box.of(path, CARDS).clip(row)
    drawn = Box.of(path, CARDS).draw(np.random.default_rng(0))
    if not len(satisfying):
        assert solution is None
        assert drawn is None
        return
    assert solution is not None
    assert drawn is not None
    assert all(p.holds(solution[None])[0] and p.holds(drawn[None])[0] for p in path)
    assert np.abs(solution - row).sum() == np.abs(satisfying - row).sum(axis=1).min()
    assert (solution != row).sum() == (satisfying != row).sum(axis=1).min()


@given(predicates(), rows)
@settings(max_examples=25, deadline=None)
def test_tied_columns_get_a_possible_row_that_changes_fewest(path: list[Predicate], row: np.ndarray) -> None:
    pytest.importorskip("z3")
    from auditor.tables.sg_paths import PathSolver

    schema = schema_of(CARDS, "b <= c", "a == 3 implies c in [0, 1]")
    solver = PathSolver(schema, np.random.default_rng(0))
    mask = schema.on_manifold(everything)
    for p in path:
        mask &= p.holds(everything)
    for solution in (solver.sticky(row, Box.of(path, CARDS)), solver.free(row, Box.of(path, CARDS))):
        if not mask.any():
            assert solution is None
        else:
            assert solution is not None
            assert schema.on_manifold(solution[None])[0]
            assert all(p.holds(solution[None])[0] for p in path)
    sticky = solver.sticky(row, Box.of(path, CARDS))
    clipped = Box.of(path, CARDS).clip(row)
    if sticky is not None and clipped is not None:
        fewest = (everything[mask] != clipped).sum(axis=1).min()
        assert (sticky != clipped).sum() == fewest


def test_an_immutable_column_keeps_its_value_under_rules() -> None:
    pytest.importorskip("z3")
    from auditor.tables.sg_paths import PathSolver

    schema = Schema(
        columns=(
            Column(name="a", kind="integer", codes=2, protected=True),
            Column(name="b", kind="integer", codes=5, immutable=True),
            Column(name="c", kind="integer", codes=5),
        ),
        constraints=("b == c",),
    )
    solver = PathSolver(schema, np.random.default_rng(0))
    row = np.array([0, 2, 2], dtype=np.int32)
    assert solver.sticky(row, Box.of([Predicate(2, False, 2)], [2, 5, 5])) is None
    found = solver.sticky(row, Box.of([Predicate(2, False, 1)], [2, 5, 5]))
    assert found is not None
    assert found.tolist() == [0, 2, 2]
