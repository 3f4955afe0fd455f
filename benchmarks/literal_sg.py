"""SG's Algorithm 2 as the paper prints it, for comparison only.

A new LIME explainer for every input, a scikit-learn tree on its neighbourhood, Z3 for every constraint, one
``predict`` call for every row that is checked (the neighbourhood itself is one call, as in LIME). Where the
paper is silent: every column is nominal to LIME, a predicate's confidence is the share of its node's rows
that take the same side, the higher rank leaves the queue first, equal ranks in order of arrival.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from lime.lime_tabular import LimeTabularExplainer
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeClassifier
from z3 import Int, Solver, sat

Predicate = tuple[int, str, float, float]  # column, "<=" or ">", threshold, confidence
Row = tuple[int, ...]
RANK1, RANK2, RANK3, THRESHOLD, SAMPLES = 5.0, 10.0, 1.0, 0.3, 5000


@dataclass
class Outcome:
    """Distinct cases: how many were generated, which were discriminatory, by phase."""

    generated: dict[str, int] = field(default_factory=lambda: {"seed": 0, "local": 0, "global": 0})
    found: dict[str, int] = field(default_factory=lambda: {"seed": 0, "local": 0, "global": 0})
    rows: list[Row] = field(default_factory=list)
    cases: list[Row] = field(default_factory=list)
    seconds: float = 0.0


def literal_sg(
    predict: Callable[[np.ndarray], np.ndarray],
    data: np.ndarray,
    cards: list[int],
    protected: int,
    *,
    limit: int = 1000,
    seed: int = 0,
) -> Outcome:
    """Run Algorithm 2 on integer codes; ``predict`` takes codes, shape (n, d)."""
    out, began = Outcome(), time.perf_counter()
    queue: list[tuple[float, int, str, Row]] = []
    arrival = 0

    def enqueue(row: Row, rank: float, phase: str) -> None:
        nonlocal arrival
        arrival += 1
        heapq.heappush(queue, (-rank, arrival, phase, row))

    for row in seed_test_input(data, 4, limit, seed):
        enqueue(row, RANK1, "seed")
    seen: set[Row] = set()
    visited: list[list[Predicate]] = []
    variables = [Int(f"x{j}") for j in range(len(cards))]
    while sum(out.generated.values()) < limit and queue:
        _, _, phase, t = heapq.heappop(queue)
        found = check(predict, t, cards, protected)
        case = t[:protected] + t[protected + 1 :]
        if case not in seen:
            seen.add(case)
            out.generated[phase] += 1
            out.found[phase] += found
            out.cases.append(t)
            if found:
                out.rows.append(t)
        path = get_path(predict, np.array(t), data, SAMPLES, seed)
        if found:
            for i, c in enumerate(path):
                if c[0] == protected:
                    continue
                constraint = [*path[:i], *path[i + 1 :], negate(c)]
                if constraint not in visited:
                    visited.append(constraint)
                    solution = solve(constraint, variables, cards, sticky_to=t, free=c[0])
                    if solution is not None:
                        enqueue(solution, RANK2 - average_confidence(constraint), "local")
        prefix: list[Predicate] = []
        for c in path:
            if c[0] == protected:
                continue
            if c[3] < THRESHOLD:
                break
            constraint = [*prefix, negate(c)]
            if constraint not in visited:
                visited.append(constraint)
                solution = solve(constraint, variables, cards)
                if solution is not None:
                    enqueue(solution, RANK3 + average_confidence(constraint), "global")
            prefix.append(c)
    out.seconds = time.perf_counter() - began
    return out


def seed_test_input(data: np.ndarray, count: int, limit: int, seed: int) -> list[Row]:
    """One row of each cluster in turn."""
    cluster = KMeans(n_clusters=count, n_init=1, random_state=seed).fit_predict(data.astype(float))
    members = [np.flatnonzero(cluster == c) for c in range(count)]
    result: list[Row] = []
    i = 0
    while i < max(map(len, members)) and len(result) < limit:
        result += [tuple(map(int, data[m[i]])) for m in members if i < len(m)]
        i += 1
    return result[:limit]


def check(predict: Callable[[np.ndarray], np.ndarray], t: Row, cards: list[int], protected: int) -> bool:
    """One call per row, until a label differs."""
    label = predict(np.array([t]))[0]
    for value in range(cards[protected]):
        if value != t[protected]:
            other = [*t[:protected], value, *t[protected + 1 :]]
            if predict(np.array([other]))[0] != label:
                return True
    return False


def get_path(
    predict: Callable[[np.ndarray], np.ndarray], t: np.ndarray, data: np.ndarray, samples: int, seed: int
) -> list[Predicate]:
    """The path of ``t`` through a tree of its LIME neighbourhood."""
    explainer = LimeTabularExplainer(data, categorical_features=list(range(data.shape[1])), discretize_continuous=False)
    _, rows = explainer._LimeTabularExplainer__data_inverse(t, samples)
    rows = rows.astype(int)
    clf = DecisionTreeClassifier(random_state=seed).fit(rows, predict(rows))
    tree, node, path = clf.tree_, 0, []
    while tree.children_left[node] != -1:
        column, threshold = int(tree.feature[node]), float(tree.threshold[node])
        below = t[column] <= threshold
        child = tree.children_left[node] if below else tree.children_right[node]
        share = float(tree.n_node_samples[child] / tree.n_node_samples[node])
        path.append((column, "<=" if below else ">", threshold, share))
        node = child
    return path


def negate(c: Predicate) -> Predicate:
    """The other side."""
    return (c[0], ">" if c[1] == "<=" else "<=", c[2], c[3])


def average_confidence(constraint: list[Predicate]) -> float:
    """Mean over predicates."""
    return sum(c[3] for c in constraint) / len(constraint)


def solve(
    constraint: list[Predicate],
    variables: list[object],
    cards: list[int],
    *,
    sticky_to: Row | None = None,
    free: int = -1,
) -> Row | None:
    """Any solution by Z3; a sticky one keeps every column but the toggled one."""
    solver = Solver()
    for x, card in zip(variables, cards, strict=True):
        solver.add(x >= 0, x < card)
    for column, sign, threshold, _ in constraint:
        solver.add(variables[column] <= threshold if sign == "<=" else variables[column] > threshold)
    if sticky_to is not None:
        solver.add(*(x == sticky_to[j] for j, x in enumerate(variables) if j != free))
    if solver.check() != sat:
        return None
    model = solver.model()
    return tuple(model.eval(x, model_completion=True).as_long() for x in variables)
