"""Tags and parses many similar sentences together, where the pipeline is one that this project knows by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from auditor.text import arcs, windows
from auditor.text.windows import Floats, Ids

LONG = 160  # tokens: all sentences of a batch go on until the longest is parsed
TOKENS = 8_000  # in a batch; the parser holds up to 12 kB for each


class Tagged(NamedTuple):
    """A sentence whose words have vectors: those of its batch, and which of them are its own."""

    vectors: Floats
    windows: Ids
    tags: Ids  # numbers into `Together.tags`


class Together:
    """The embedded pipeline, batch by batch.

    Parameters
    ----------
    tok2vec, tagger, parser : spaCy components
        Those of `find`.

    Attributes
    ----------
    tags, relations : tuple of str
        What the numbers in the results stand for.
    """

    def __init__(self, tok2vec: object, tagger: object, parser: object) -> None:
        self._encoder = windows.Encoder(tok2vec, tagger)
        self._arcs = arcs.ArcEager(parser)
        self.tags, self.relations = self._encoder.labels, self._arcs.labels
        self._decorated = arcs.decorated(self.relations)

    @classmethod
    def find(cls, components: Sequence[object]) -> Together | None:
        """Return the pipeline of these components; None where a layer is unknown, and spaCy has to run it."""
        if len(components) != 3 or not windows.fits(*components[:2]) or not arcs.fits(components[2]):
            return None
        return cls(*components)

    @staticmethod
    def takes(doc: Any) -> bool:
        """Whether a sentence is worth the batch: not empty, and not very long."""
        return 0 < len(doc) <= LONG

    def tag(self, docs: Sequence[Any]) -> list[Tagged]:
        """Tag sentences that `takes` allows; the result is in their order."""
        found: list[Any] = [None] * len(docs)
        for batch in _batches([len(doc) for doc in docs]):
            vectors, at = self._encoder.vectors([docs[i] for i in batch])
            tags = self._encoder.tags(vectors)[at]
            ends = np.cumsum([len(docs[i]) for i in batch])[:-1]
            for i, own, tag in zip(batch, np.split(at, ends), np.split(tags, ends), strict=True):
                found[i] = Tagged(vectors, own, tag)
        return found

    def trees(self, sentences: Sequence[Tagged]) -> list[tuple[Ids, Ids] | None]:
        """Parse tagged sentences.

        Returns
        -------
        list of (array, array) or None
            Heads, and numbers into `relations`; None where a relation asks for a change of the tree that only
            spaCy makes.
        """
        found: list[tuple[Ids, Ids] | None] = [None] * len(sentences)
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
                    found[i] = heads[row, : sizes[row]], labels[row, : sizes[row]]
        return found


def _batches(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Yield the numbers of sentences of like size, in runs of about `TOKENS` tokens."""
    batch: list[int] = []
    total = 0
    for i in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and total + sizes[i] > TOKENS:
            yield batch
            batch, total = [], 0
        batch.append(i)
        total += sizes[i]
    if batch:
        yield batch
