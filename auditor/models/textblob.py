"""``textblob``: the word-list sentiment analyser that ASTRAEA's study audits beside VADER (its Table 4).

TextBlob (Loria) averages the polarities of the words of a text that its list holds, after negation and degree
words; the mean is in [-1, 1]. It needs no corpora for this.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, ClassVar

from auditor.core.errors import CallError, MissingDependency
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Request, digest
from auditor.models.local import classify, has_neutral


class TextBlobModel(Model):
    """TextBlob as a two-label (or three-label) classifier of bare texts.

    Parameters
    ----------
    neutral : bool or None
        None (default): True where ``task`` has the label "neutral".
        False: "positive" if the polarity is >= 0, else "negative"; a text without any listed word
        is "positive", as with `auditor.models.lexicon.Vader`, so that a tie is broken the same way for a text and
        its variants. True: exactly 0 is "neutral".
    task : Task or None
        The task that is asked.

    Raises
    ------
    MissingDependency
        The extra ``textblob`` is not installed.

    Notes
    -----
    With two labels ``scores`` is ``(polarity + 1) / 2`` for "positive" and the rest for "negative": an
    order-preserving map to [0, 1], not a calibrated probability.
    """

    costs: ClassVar[Costs] = "nothing"

    deterministic = True
    cacheable = False
    max_batch = 256
    at_once = 1

    def __init__(self, *, neutral: bool | None = None, task: object = None) -> None:
        try:
            package = importlib.import_module("textblob")
        except ImportError as error:
            raise MissingDependency("The model textblob", "textblob", extra="textblob") from error
        from importlib.metadata import version

        self.name = "textblob"
        self._neutral = neutral = has_neutral(task) if neutral is None else neutral
        self._blob: Any = package.TextBlob
        self.fingerprint = "textblob:" + digest(
            {"adapter": "textblob.v1", "package": version("textblob"), "neutral": neutral}, size=16
        )

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Label every text of ``batch``; see `auditor.core.protocols.Model`."""
        return await classify(batch, self._answer)

    def _answer(self, text: str) -> Reply:
        polarity = float(self._blob(text).sentiment.polarity)
        if self._neutral and polarity == 0:
            return Reply(text="neutral")
        label = "positive" if polarity >= 0 else "negative"
        if self._neutral:
            return Reply(text=label)
        score = min(1.0, max(0.0, (polarity + 1) / 2))
        return Reply(text=label, scores={"positive": score, "negative": 1 - score})
