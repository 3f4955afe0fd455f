"""Tags many similar sentences, each distinct window of words once.

The convolutions of a spaCy ``MaxoutWindowEncoder`` see a word and its neighbours: after layer *n*, a word's
vector depends on the *n* words to either side and on nothing else. Variants of one sentence share all windows but
those around the words that were exchanged, so every layer is computed for its distinct windows only, by the
layer's own weights. The vectors are those that spaCy computes; tests hold tags and trees equal to its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]

_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)


class Encoder:
    """The embedding, the convolutions and the tagger of one pipeline.

    Parameters
    ----------
    tok2vec, tagger : spaCy components
        As `fits` found them.
    """

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


def fits(tok2vec: Any, tagger: Any) -> bool:
    """Whether the components have the layers that `Encoder` knows."""
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
            residual.name.startswith("residual(") and parts[0].name == "expand_window" and len(parts) == 2 + drop
            for residual, parts in zip(tower.layers, layers, strict=True)
            for drop in [len(parts) - 2]
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
        and len(columns) <= len(_MIX)
        and set(windows) == {1}
        and encode.attrs.get("pad") == len(windows)
        and listener.name == "tok2vec-listener"
        and output.layers[0].name == "softmax"
        and tok2vec.model.ops.name == "numpy"
    )


def _distinct_rows(rows: NDArray[np.uint64]) -> tuple[Ids, Ids]:
    """Return which rows are the first of their kind, and the kind of each row."""
    with np.errstate(over="ignore"):
        mixed = (rows * _MIX[: rows.shape[1]]).sum(axis=1, dtype=np.uint64)
    _, keep, kind = np.unique(mixed, return_index=True, return_inverse=True)
    if not np.array_equal(rows[keep][kind], rows):  # two kinds with one key
        _, keep, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return keep, kind.reshape(-1)
