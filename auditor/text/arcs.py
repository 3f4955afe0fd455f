"""Parses many sentences in step: spaCy's arc-eager parser on arrays.

spaCy steps through the states of a batch one by one; here one step of all sentences is a handful of array
operations, features are computed once for each distinct window of words (`auditor.text.windows`), and states
that see the same windows, as most of those of two variants of one sentence do, are scored once. Weights, order
of additions and ties are spaCy's, so that the trees are too; tests hold them equal. Sentences are one tree each:
no move that starts a new sentence is ever valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.text.windows import Floats, Ids

FEATURES = 8  # first two of the buffer, top three of the stack, left child of both tops, right child of the stack's
_MIX = np.random.Generator(np.random.PCG64(3)).integers(1, 2**62, FEATURES, np.int64) | 1


class Trees(NamedTuple):
    """Heads and relations of a batch, (sentences, longest); a root is its own head. -1 where there is no token."""

    heads: Ids
    labels: Ids  # numbers into `ArcEager.labels`


class ArcEager:
    """The transition system and the weights of one spaCy parser.

    Parameters
    ----------
    parser : spaCy component
        One for which `fits` holds.

    Attributes
    ----------
    labels : tuple of str
        Relations; the last is that of a root.
    """

    def __init__(self, parser: Any) -> None:
        model = parser.model
        lower, upper = model.get_ref("lower"), model.get_ref("upper")
        self._linear = model.get_ref("tok2vec").layers[-1]
        self._gemm = model.ops.gemm
        features, hidden, pieces, width = lower.get_param("W").shape
        self._hidden, self._pieces = hidden, pieces
        # The pieces of a maxout side by side: their maximum is then one of whole rows.
        by_piece = lower.get_param("W").transpose(0, 2, 1, 3)
        self._weights = np.ascontiguousarray(by_piece).reshape(features * pieces * hidden, width)
        self._pad = lower.get_param("pad")[0].transpose(0, 2, 1).reshape(features, pieces * hidden)
        self._bias = lower.get_param("b").T.reshape(pieces * hidden)
        self._upper = upper
        names = [parser.moves.class_name(i) for i in range(parser.moves.n_moves)]
        kinds = np.array([name[0] for name in names])
        self._kind = {kind: np.flatnonzero(kinds == kind) for kind in "SDLRB"}
        self._moves = kinds
        self.labels: tuple[str, ...] = (*(name[2:] for name in names), "ROOT")

    def table(self, vectors: Floats) -> Floats:
        """Return what each window adds to a state in each role: (windows + 1, roles, hidden); first no word."""
        tokens = self._linear.predict(vectors)
        found = np.empty((len(tokens) + 1, len(self._weights)), np.float32)
        self._gemm(tokens, self._weights, trans2=True, out=found[1:])
        found = found.reshape(len(found), *self._pad.shape)
        found[0] = self._pad
        return found

    def parse(self, table: Floats, windows: Ids, sizes: Ids) -> Trees:
        """Parse sentences.

        Parameters
        ----------
        table : array
            From `table`.
        windows : array, (tokens,)
            The window of each token, one sentence after the other.
        sizes : array, (sentences,)
            Tokens of each sentence, at least 1.
        """
        state = _States(windows, sizes)
        while len(state.rows):
            seen = state.seen()
            mixed = (seen * _MIX).sum(axis=1)
            _, first, same = np.unique(mixed, return_index=True, return_inverse=True)
            if not np.array_equal(seen[first][same], seen):  # two states with one key
                first = same = np.arange(len(seen))
            scores = self._scores(table, seen[first])[same]
            shift, reduce, arc = state.valid()
            scores[:, self._kind["B"]] = -np.inf
            scores[np.ix_(~shift, self._kind["S"])] = -np.inf
            scores[np.ix_(~reduce, self._kind["D"])] = -np.inf
            scores[np.ix_(~arc, np.concatenate([self._kind["L"], self._kind["R"]]))] = -np.inf
            best = scores.argmax(axis=1)
            state.take(self._moves[best], best)
        heads, labels = state.heads, state.labels
        root = (heads < 0) & (np.arange(heads.shape[1]) < sizes[:, None])
        heads[root] = np.nonzero(root)[1]
        labels[root] = len(self.labels) - 1
        return Trees(heads, labels)

    def _scores(self, table: Floats, seen: Ids) -> Floats:
        total = table[seen[:, 0], 0]
        for role in range(1, FEATURES):
            total += table[seen[:, role], role]
        total += self._bias
        size = self._hidden
        hidden = total[:, :size]
        for piece in range(1, self._pieces):
            hidden = np.maximum(hidden, total[:, piece * size : (piece + 1) * size])
        found: Floats = self._upper.predict(np.ascontiguousarray(hidden))
        return found


class _States:
    """Stacks, buffers and arcs of all sentences; ``rows`` are those that are not finished."""

    def __init__(self, windows: Ids, sizes: Ids) -> None:
        count, longest = len(sizes), int(sizes.max())
        self.sizes = sizes
        self.rows = np.arange(count)
        # One column more than words: index -1 finds "no word" there.
        shape = (count, longest + 1)
        inside = np.arange(longest + 1) < sizes[:, None]
        self._window = np.zeros(shape, np.int64)
        self._window[inside] = windows + 1
        self._stack, self._back = np.full(shape, -1), np.full(shape, -1)
        self._depth, self._again, self._next = (np.zeros(count, np.int64) for _ in range(3))
        self._heads, self._labels = np.full(shape, -1), np.full(shape, -1)
        self._left, self._right, self._older = (np.full(shape, -1) for _ in range(3))
        self._fixed = np.zeros(shape, bool)  # was put back on the buffer: not to be shifted again

    @property
    def heads(self) -> Ids:
        return self._heads[:, :-1]

    @property
    def labels(self) -> Ids:
        return self._labels[:, :-1]

    def _top(self, rows: Ids, n: int) -> Ids:
        at = self._depth[rows] - 1 - n
        return np.where(at >= 0, self._stack[rows, at], -1)

    def _front(self, rows: Ids, n: int) -> Ids:
        again = self._again[rows]
        new = self._next[rows] + n - again
        fresh = np.where(new < self.sizes[rows], new, -1)
        return np.where(again > n, self._back[rows, again - 1 - n], fresh)

    def seen(self) -> Ids:
        """Return the windows that each state looks at, (states, features); 0 is no word."""
        rows = self.rows
        self._b0, self._s0 = self._front(rows, 0), self._top(rows, 0)
        places = [
            self._b0,
            self._front(rows, 1),
            self._s0,
            self._top(rows, 1),
            self._top(rows, 2),
            self._left[rows, self._b0],
            self._left[rows, self._s0],
            self._right[rows, self._s0],
        ]
        found: Ids = self._window[rows[:, None], np.stack(places, axis=1)]
        return found

    def valid(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Whether shift, reduce and an arc are allowed."""
        rows = self.rows
        depth = self._depth[rows]
        ahead = self.sizes[rows] - self._next[rows] + self._again[rows]
        shift = (depth == 0) | ((ahead >= 2) & ~self._fixed[rows, self._b0])
        reduce = (depth > 0) & ((ahead == 0) | (depth > 1))
        return shift, reduce, (depth > 0) & (ahead > 0)

    def take(self, kinds: NDArray[np.str_], moves: Ids) -> None:
        """Make one move in each state."""
        b0, s0, rows = self._b0, self._s0, self.rows
        left = kinds == "L"
        r, head, child = rows[left], b0[left], s0[left]
        self._heads[r, child], self._labels[r, child] = self._attach(r, head, child), moves[left]
        self._left[r, head] = child
        self._fixed[r, head] = False
        right = kinds == "R"
        r, head, child = rows[right], s0[right], b0[right]
        self._heads[r, child], self._labels[r, child] = head, moves[right]
        self._older[r, child], self._right[r, head] = self._right[r, head], child
        self._push(rows[right | (kinds == "S")], b0[right | (kinds == "S")])
        reduce = kinds == "D"
        r, top = rows[reduce], s0[reduce]
        put_back = (self._heads[r, top] < 0) & (self._depth[r] > 1)
        r, top = r[put_back], top[put_back]
        self._fixed[r, top] = True
        self._back[r, self._again[r]] = top
        self._again[r] += 1
        self._depth[rows[left | reduce]] -= 1
        done = (self._depth[rows] <= 0) & (self._next[rows] - self._again[rows] >= self.sizes[rows])
        self.rows = rows[~done]

    def _attach(self, rows: Ids, head: Ids, child: Ids) -> Ids:
        """Take ``child`` from the head it may have, whose last right child it is; returns ``head``."""
        old = self._heads[rows, child]
        had = old >= 0
        self._right[rows[had], old[had]] = self._older[rows[had], child[had]]
        return head

    def _push(self, rows: Ids, words: Ids) -> None:
        self._stack[rows, self._depth[rows]] = words
        self._depth[rows] += 1
        again = self._again[rows] > 0
        self._again[rows[again]] -= 1
        self._next[rows[~again]] += 1


def fits(parser: Any) -> bool:
    """Whether `ArcEager` knows this parser: greedy, eight features, maxout, an output layer, no subtokens."""
    try:
        model = parser.model
        lower, layers = model.get_ref("lower"), model.get_ref("tok2vec").layers
        names = [parser.moves.class_name(i) for i in range(parser.moves.n_moves)]
        return bool(
            parser.cfg["beam_width"] == 1
            and not model.attrs["unseen_classes"]
            and model.attrs["has_upper"]
            and model.ops.name == "numpy"
            and lower.name == "precomputable_affine"
            and lower.get_dim("nF") == FEATURES
            and lower.get_dim("nP") > 1
            and [layer.name for layer in layers] == ["tok2vec-listener", "list2array", "linear"]
            and all(name[0] in "SDLRB" and "subtok" not in name for name in names)
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return False


def decorated(labels: Sequence[str]) -> list[int]:
    """Return which relations name a head to be looked for (pseudo-projective parsing), by number."""
    return [i for i, label in enumerate(labels) if "||" in label]
