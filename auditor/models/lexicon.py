"""``vader``: the rule and lexicon sentiment classifier that ASTRAEA's study audits (its Table 4).

VADER (Hutto & Gilbert, ICWSM 2014) adds up the valences of the lexicon words in a text, corrects them
for negation, degree words, capitals and punctuation, and squashes the sum into ``compound`` in
[-1, 1]. It looks at no other word, so a swap of person terms moves it only where a term is in the
lexicon or breaks a rule's word pattern.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from heapq import heappop, heappush
from importlib.metadata import version
from typing import Any, ClassVar

from auditor.core.errors import CallError
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Request, digest
from auditor.models.local import classify, has_neutral


def analyzer() -> Any:
    """The package's analyzer, with the same results in time that grows with the text and not with its square.

    The package lower-cases all words of a text for each word of its lexicon, of which it compares the next six, and
    looks for each valence from the beginning after a "but".
    """
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    class Analyzer(SentimentIntensityAnalyzer):  # type: ignore[misc]
        @staticmethod
        def _negation_check(valence: float, words: list[str], start_i: int, i: int) -> object:
            low = max(0, i - 3)
            return SentimentIntensityAnalyzer._negation_check(valence, words[low : i + 1], start_i, i - low)

        def _special_idioms_check(self, valence: float, words: list[str], i: int) -> object:
            low = max(0, i - 3)
            return SentimentIntensityAnalyzer._special_idioms_check(valence, words[low : i + 3], i - low)

        @staticmethod
        def _but_check(words: list[str], sentiments: list[float]) -> list[float]:
            return weigh_but(words, sentiments)

    return Analyzer()


def weigh_but(words: Sequence[str], valences: list[float]) -> list[float]:
    """Halve what stands before the first "but" and raise what stands behind it, as the package does.

    For each place in turn it changes the *first* place that holds the same valence, which may be another.
    """
    but = next((i for i, word in enumerate(words) if word.lower() == "but"), None)
    if but is None:
        return valences
    places: dict[float, list[int]] = {}
    for i, valence in enumerate(valences):
        places.setdefault(valence, []).append(i)  # in order: a heap
    for i in range(len(valences)):
        valence = valences[i]
        first = places[valence][0]
        changed = valence * (0.5 if first < but else 1.5)
        if first != but and changed != valence:
            heappop(places[valence])
            valences[first] = changed
            heappush(places.setdefault(changed, []), first)
    return valences


class Vader(Model):
    """VADER as a two-label (or three-label) classifier of bare texts.

    Parameters
    ----------
    neutral : bool or None
        None (default): True where ``task`` has the label "neutral".
        False: two labels by the sign of ``compound``: "positive" if it is >= 0, else "negative".
        ASTRAEA compares labels of pairs and states no cut-off, and the package's own recommendation
        (>= 0.05 positive, <= -0.05 negative, else neutral) has a third label that a two-label task
        cannot read. A text without any lexicon word has ``compound`` 0 and is labelled "positive": a
        tie broken the same way for a text and its variants.
        True: the package's three labels.
    task : Task or None
        The task that is asked.

    Notes
    -----
    With two labels ``scores`` is ``(compound + 1) / 2`` for "positive" and the rest for "negative": an
    order-preserving map to [0, 1], not a calibrated probability. With three labels there is none.

    Examples
    --------
    >>> import asyncio
    >>> from auditor.core.types import Prompt, Request
    >>> ask = Request(prompt=Prompt(format="bare", text="A great film."), replicate=0, variant_id="v")
    >>> asyncio.run(Vader().generate([ask]))[0].text
    'positive'
    """

    costs: ClassVar[Costs] = "nothing"

    deterministic = True
    cacheable = False
    max_batch = 256
    at_once = 1

    def __init__(self, *, neutral: bool | None = None, task: object = None) -> None:
        self.name = "vader"
        self._neutral = neutral = has_neutral(task) if neutral is None else neutral
        self._analyzer = analyzer()
        lexicon = hashlib.sha256(self._analyzer.lexicon_full_filepath.encode("utf-8")).hexdigest()
        emoji = hashlib.sha256(self._analyzer.emoji_full_filepath.encode("utf-8")).hexdigest()
        self.fingerprint = "vader:" + digest(
            {
                "adapter": "vader.v1",
                "package": version("vaderSentiment"),
                "lexicon": lexicon,
                "emoji": emoji,
                "neutral": neutral,
            },
            size=16,
        )

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Label every text of ``batch``; see `auditor.core.protocols.Model`."""
        return await classify(batch, self._answer)

    def _answer(self, text: str) -> Reply:
        compound = float(self._analyzer.polarity_scores(text)["compound"])
        if self._neutral:
            label = "positive" if compound >= 0.05 else "negative" if compound <= -0.05 else "neutral"
            return Reply(text=label)
        score = (compound + 1) / 2
        return Reply(
            text="positive" if compound >= 0 else "negative", scores={"positive": score, "negative": 1 - score}
        )
