"""``reviews``: the embedded film-review classifier, an n-gram TF-IDF logistic regression.

`tools/train_reviews.py` trains it with scikit-learn; here it runs on the standard library from plain
weights (``embedded/reviews/weights.tsv.gz``): a JSON header line, then one line ``term, document count,
coefficient`` for each term, tab-separated.

Tokenising: lower-case; the typographic apostrophe becomes ``'``; a word is a run of letters and digits, with
apostrophes inside (``doesn't``); everything else separates words. Terms are words and pairs of adjacent
words (pairs reach over punctuation).

For a text with term counts ``c``: ``x_t = (1 + ln c_t) * (ln((1 + N) / (1 + d_t)) + 1)`` with ``N`` training
documents and ``d_t`` of them holding ``t``; ``p(positive) = 1 / (1 + exp(-(b + w.x / ||x||)))``; terms
outside the vocabulary are left out; label "positive" if ``p >= 0.5``.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from auditor.core import data
from auditor.core.errors import CallError, DataFileError
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Request
from auditor.models.local import classify

WEIGHTS_FORMAT = "auditor-reviews-1"
WORD = r"[^\W_]+(?:'[^\W_]+)*"
_words = re.compile(WORD).findall


def normalise(text: str) -> str:
    """Lower-case ``text`` and write the typographic apostrophe as ``'``."""
    return text.lower().replace("\u2019", "'")


def terms(text: str) -> list[str]:
    """List the words of ``text`` and the pairs of adjacent words, with repeats.

    Examples
    --------
    >>> terms("It doesn\u2019t work.")
    ['it', "doesn't", 'work', "it doesn't", "doesn't work"]
    """
    words = _words(normalise(text))
    return words + [f"{a} {b}" for a, b in itertools.pairwise(words)]


class Reviews(Model):
    """The embedded review classifier: labels "positive" and "negative" with probabilities.

    Parameters
    ----------
    weights : path, optional
        A weights file written by ``tools/train_reviews.py``; the embedded one by default.

    Raises
    ------
    DataFileError
        The weights file is missing or malformed; names the line.

    Examples
    --------
    >>> round(Reviews().probability("A dull, lifeless mess."), 1)
    0.0
    """

    costs: ClassVar[Costs] = "nothing"

    deterministic = True
    cacheable = False
    max_batch = 256
    at_once = 1

    def __init__(self, *, weights: str | Path | None = None) -> None:
        path = data.path("embedded", "reviews", "weights.tsv.gz") if weights is None else Path(weights)
        self.name = "reviews"
        try:
            packed = path.read_bytes()
            lines = gzip.decompress(packed).decode("utf-8").splitlines()
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise DataFileError(
                f"{path}: the weights could not be read ({error}). Write them with tools/train_reviews.py"
            ) from error
        self.fingerprint = "reviews:" + hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()[:32]
        header = _header(lines, path)
        self._intercept = float(header["intercept"])
        self._sublinear = bool(header["sublinear_tf"])
        self._table = _table(lines, int(header["documents"]), path)

    def probability(self, text: str) -> float:
        """Compute the probability that ``text`` is positive, in [0, 1].

        A text without any known term gets the intercept's probability.
        """
        dot = norm = 0.0
        table = self._table
        for term, count in Counter(terms(text)).items():
            entry = table.get(term)
            if entry is not None:
                x = entry[0] * ((1.0 + math.log(count)) if self._sublinear else count)
                dot += x * entry[1]
                norm += x * x
        z = self._intercept + (dot / math.sqrt(norm) if norm else 0.0)
        return 1.0 / (1.0 + math.exp(-z))

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Label every text of ``batch``; see `auditor.core.protocols.Model`."""
        return await classify(batch, self._answer)

    def _answer(self, text: str) -> Reply:
        p = self.probability(text)
        return Reply(text="positive" if p >= 0.5 else "negative", scores={"positive": p, "negative": 1.0 - p})


def _header(lines: Sequence[str], path: Path) -> dict[str, float]:
    try:
        header = json.loads(lines[0])
        if header["format"] != WEIGHTS_FORMAT:
            raise ValueError(f"format is {header['format']!r}, expected {WEIGHTS_FORMAT!r}")
        for field in ("intercept", "sublinear_tf", "documents"):
            header[field] = header[field] + 0
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise DataFileError(f"{path}, line 1: not the header of a weights file ({error!r})") from error
    return dict(header)


def _table(lines: Sequence[str], documents: int, path: Path) -> dict[str, tuple[float, float]]:
    """Term to (inverse document frequency, coefficient)."""
    table: dict[str, tuple[float, float]] = {}
    for number, line in enumerate(lines[1:], start=2):
        try:
            term, count, coefficient = line.split("\t")
            table[term] = (math.log((1 + documents) / (1 + int(count))) + 1, float(coefficient))
        except ValueError as error:
            raise DataFileError(
                f"{path}, line {number}: expected term, count and coefficient, tab-separated ({error})"
            ) from error
    return table
