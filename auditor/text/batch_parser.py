"""Tags and parses many similar sentences together, where the pipeline is one that this project knows by layer.

The convolutions of a spaCy ``MaxoutWindowEncoder`` see a word and its neighbours: after layer *n*, a word's
vector depends on the *n* words to either side and on nothing else. Variants of one sentence share all windows but
those around the words that were exchanged, so every layer is computed for its distinct windows only.

spaCy's arc-eager parser steps through the states of a batch one by one; here one step of all sentences is a handful of
array operations, features are computed once for each distinct window, and states that see the same windows are scored
once. Weights, order of additions and ties are spaCy's, so that vectors, tags and trees are too; tests hold them equal.
Sentences are one tree each: no move that starts a new sentence is ever valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from auditor.text.pipelines import batches

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

LONG = 160  # tokens: all sentences of a batch go on until the longest is parsed
TOKENS = 8_000  # in a batch; the parser holds up to 12 kB for each
FEATURES = 8  # first two of the buffer, top three of the stack, left child of both tops, right child of the stack's
_MIX = np.random.Generator(np.random.PCG64(3)).integers(1, 2**62, FEATURES, np.int64) | 1
_WORD_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)


class Tagged(NamedTuple):
    """A sentence whose words have vectors: those of its batch, and which of them are its own."""

    vectors: Floats
    windows: Ids
    tags: Ids  # numbers into `Together.tags`


class Together:
    """The embedded pipeline, batch by batch; ``tags`` and ``relations`` are what numbers in its results stand for."""

    def __init__(self, tok2vec: object, tagger: object, parser: object) -> None:
        self._encoder, self._arcs = _Encoder(tok2vec, tagger), _ArcEager(parser)
        self.tags, self.relations = self._encoder.labels, self._arcs.labels
        # Relations that name a head to be looked for (pseudo-projective parsing).
        self._decorated = [i for i, label in enumerate(self.relations) if "||" in label]

    @classmethod
    def find(cls, components: Sequence[object]) -> Together | None:
        """Return the pipeline of these components; None where a layer is unknown, and spaCy has to run it."""
        if len(components) != 3 or not _encodes(*components[:2]) or not _parses(components[2]):
            return None
        return cls(*components)

    @staticmethod
    def takes(doc: Any) -> bool:
        """Whether a sentence is worth the batch: not empty, and not very long."""
        return 0 < len(doc) <= LONG

    def tag(self, docs: Sequence[Any]) -> list[Tagged]:
        """Tag sentences that `takes` allows; the result is in their order."""
        tagged: list[Any] = [None] * len(docs)
        for batch in batches([len(doc) for doc in docs], tokens=TOKENS, most=TOKENS):
            vectors, at = self._encoder.vectors([docs[i] for i in batch])
            tags = self._encoder.tags(vectors)[at]
            ends = np.cumsum([len(docs[i]) for i in batch])[:-1]
            for i, own, tag in zip(batch, np.split(at, ends), np.split(tags, ends), strict=True):
                tagged[i] = Tagged(vectors, own, tag)
        return tagged

    def trees(self, sentences: Sequence[Tagged]) -> list[tuple[Ids, Ids] | None]:
        """Heads and numbers into `relations`; None where a relation asks for a change of the tree that spaCy makes."""
        trees: list[tuple[Ids, Ids] | None] = [None] * len(sentences)
        by_batch: dict[int, list[int]] = {}
        for i, one in enumerate(sentences):
            by_batch.setdefault(id(one.vectors), []).append(i)
        for members in by_batch.values():
            group = [sentences[i].windows for i in members]
            used, own = np.unique(np.concatenate(group), return_inverse=True)
            sizes = np.array([len(one) for one in group])
            table = self._arcs.table(sentences[members[0]].vectors[used])
            heads, labels = self._arcs.parse(table, own.reshape(-1), sizes)
            odd = np.flatnonzero(np.isin(labels, self._decorated).any(axis=1)).tolist()
            for row, i in enumerate(members):
                if row not in odd:
                    trees[i] = heads[row, : sizes[row]], labels[row, : sizes[row]]
        return trees


class _Encoder:
    """The embedding, the convolutions and the tagger of one pipeline that `_encodes` allows."""

    def __init__(self, tok2vec: Any, tagger: Any) -> None:
        embed, encode = tok2vec.model.layers
        self._columns = list(embed.layers[0].attrs["columns"])
        self._hashes, self._mixer = embed.layers[2].layers[0], embed.layers[3].layers[0]
        self._convolutions = [residual.layers[0].layers[1] for residual in encode.layers[0].layers]
        self._softmax = tagger.model.layers[1].layers[0]
        self.labels: tuple[str, ...] = tuple(tagger.labels)
        self.width = int(encode.get_dim("nO"))

    def vectors(self, docs: Sequence[Any]) -> tuple[Floats, Ids]:
        """Return the vectors of the distinct windows, (windows, width), and the window of each token in a row."""
        pad = len(self._convolutions)
        sizes = np.array([len(doc) for doc in docs])
        words = np.concatenate([doc.to_array(self._columns) for doc in docs])
        keep, word = _distinct_rows(words)
        known: Floats = self._mixer.predict(self._hashes.predict(words[keep]))
        known = np.vstack([np.zeros((1, self.width), np.float32), known])  # 0 stands for no word
        inside = np.arange(len(words)) + pad * np.repeat(np.arange(1, len(docs) + 1), sizes)
        at = np.zeros(len(words) + pad * (len(docs) + 1), np.int64)
        at[inside] = word + 1
        for layer in self._convolutions:
            size = len(known)
            before, after = np.zeros_like(at), np.zeros_like(at)
            before[1:], after[:-1] = at[:-1], at[1:]
            keys, at = np.unique((before * size + at) * size + after, return_inverse=True)
            middle = keys // size % size
            three = np.hstack([known[keys // size // size], known[middle], known[keys % size]])
            known = known[middle] + layer.predict(three)
        return known, at[inside]

    def tags(self, vectors: Floats) -> Ids:
        """Return the number of the best tag for each vector."""
        best: Ids = self._softmax.predict(vectors).argmax(axis=1)
        return best


def _encodes(tok2vec: Any, tagger: Any) -> bool:
    """Whether the components have the layers that `_Encoder` knows."""
    embed_names = ["extract_features", "list2ragged", None, None, "ragged2list"]
    try:
        embed, encode = tok2vec.model.layers
        (tower,) = encode.layers
        listener, output = tagger.model.layers
        embeds = [layer.name for layer in embed.layers]
        embedded = len(embeds) == len(embed_names) and all(
            want is None or want == name for want, name in zip(embed_names, embeds, strict=True)
        )
        columns = embed.layers[0].attrs["columns"]
        layers = [residual.layers[0].layers for residual in tower.layers]
        windows = [parts[0].attrs["window_size"] for parts in layers]
        named = all(
            residual.name.startswith("residual(") and parts[0].name == "expand_window"
            for residual, parts in zip(tower.layers, layers, strict=True)
        )
        wrapped = all(
            part.name.startswith("with_array(") and len(part.layers) == 1
            for part in (embed.layers[2], embed.layers[3], encode, output)
        )
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return False
    return (
        embedded
        and named
        and wrapped
        and len(columns) <= len(_WORD_MIX)
        and set(windows) == {1}
        and encode.attrs.get("pad") == len(windows)
        and listener.name == "tok2vec-listener"
        and output.layers[0].name == "softmax"
        and tok2vec.model.ops.name == "numpy"
    )


def _distinct_rows(rows: NDArray[np.uint64]) -> tuple[Ids, Ids]:
    """Return which rows are the first of their kind, and the kind of each row."""
    with np.errstate(over="ignore"):
        mixed = (rows * _WORD_MIX[: rows.shape[1]]).sum(axis=1, dtype=np.uint64)
    _, keep, kind = np.unique(mixed, return_index=True, return_inverse=True)
    if not np.array_equal(rows[keep][kind], rows):  # two kinds with one key
        _, keep, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return keep, kind.reshape(-1)


class _ArcEager:
    """The transition system and the weights of a parser that `_parses` allows; the last of ``labels`` is a root's."""

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
        table = np.empty((len(tokens) + 1, len(self._weights)), np.float32)
        self._gemm(tokens, self._weights, trans2=True, out=table[1:])
        table = table.reshape(len(table), *self._pad.shape)
        table[0] = self._pad
        return table

    def parse(self, table: Floats, windows: Ids, sizes: Ids) -> tuple[Ids, Ids]:
        """Parse sentences; gives heads and labels, (sentences, longest): a root heads itself, -1 is no token.

        ``table`` is of `table`; ``windows`` holds the window of each token, one sentence after the other; ``sizes`` are
        tokens of each sentence, at least 1.
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
        heads, labels = state.heads[:, :-1], state.labels[:, :-1]
        root = (heads < 0) & (np.arange(heads.shape[1]) < sizes[:, None])
        heads[root] = np.nonzero(root)[1]
        labels[root] = len(self.labels) - 1
        return heads, labels

    def _scores(self, table: Floats, seen: Ids) -> Floats:
        total = table[seen[:, 0], 0]
        for role in range(1, FEATURES):
            total += table[seen[:, role], role]
        total += self._bias
        size = self._hidden
        hidden = total[:, :size]
        for piece in range(1, self._pieces):
            hidden = np.maximum(hidden, total[:, piece * size : (piece + 1) * size])
        scores: Floats = self._upper.predict(np.ascontiguousarray(hidden))
        return scores


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
        self.heads, self.labels = np.full(shape, -1), np.full(shape, -1)
        self._left, self._right, self._older = (np.full(shape, -1) for _ in range(3))
        self._fixed = np.zeros(shape, bool)  # was put back on the buffer: not to be shifted again

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
        buffer = [self._b0, self._front(rows, 1)]
        stack = [self._s0, self._top(rows, 1), self._top(rows, 2)]
        children = [self._left[rows, self._b0], self._left[rows, self._s0], self._right[rows, self._s0]]
        windows: Ids = self._window[rows[:, None], np.stack([*buffer, *stack, *children], axis=1)]
        return windows

    def valid(self) -> tuple[Flags, Flags, Flags]:
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
        old = self.heads[r, child]  # the head whose last right child it was, where there is one
        had = old >= 0
        self._right[r[had], old[had]] = self._older[r[had], child[had]]
        self.heads[r, child], self.labels[r, child] = head, moves[left]
        self._left[r, head] = child
        self._fixed[r, head] = False
        right = kinds == "R"
        r, head, child = rows[right], s0[right], b0[right]
        self.heads[r, child], self.labels[r, child] = head, moves[right]
        self._older[r, child], self._right[r, head] = self._right[r, head], child
        self._push(rows[right | (kinds == "S")], b0[right | (kinds == "S")])
        reduce = kinds == "D"
        r, top = rows[reduce], s0[reduce]
        put_back = (self.heads[r, top] < 0) & (self._depth[r] > 1)
        r, top = r[put_back], top[put_back]
        self._fixed[r, top] = True
        self._back[r, self._again[r]] = top
        self._again[r] += 1
        self._depth[rows[left | reduce]] -= 1
        done = (self._depth[rows] <= 0) & (self._next[rows] - self._again[rows] >= self.sizes[rows])
        self.rows = rows[~done]

    def _push(self, rows: Ids, words: Ids) -> None:
        self._stack[rows, self._depth[rows]] = words
        self._depth[rows] += 1
        again = self._again[rows] > 0
        self._again[rows[again]] -= 1
        self._next[rows[~again]] += 1


def _parses(parser: Any) -> bool:
    """Whether `_ArcEager` knows this parser: greedy, eight features, maxout, an output layer, no subtokens."""
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
