"""Models of bare texts without a network: ``vader``, ``textblob``, ``reviews`` (sentiment); ``rules`` (coreference).

``vader`` and ``textblob`` are the word lists that ASTRAEA's study audits (its Table 4). VADER (Hutto & Gilbert, ICWSM
2014) sums the valences of lexicon words, corrected for negation, degree words, capitals and punctuation. TextBlob
(Loria) averages the polarities of listed words, after negation and degree words.

``reviews`` is an n-gram TF-IDF logistic regression. `tools/train_reviews.py` trains it with scikit-learn; here it runs
on the standard library from plain weights (``embedded/reviews/weights.tsv.gz``): a JSON header line, then ``term,
document count, coefficient``. With term counts ``c``: ``x_t = (1 + ln c_t) * (ln((1 + N) / (1 + d_t)) + 1)`` with ``N``
training documents, ``d_t`` of them with ``t``; ``p(positive) = 1 / (1 + exp(-(b + w.x / ||x||)))``.

``rules`` takes the nearest antecedent that fits: a pronoun refers to the nearer of the two people named first, unless
its gender rules that one out. Only the dictionary of gender gives a noun a gender, so occupations have none unless
their word names one (saleswoman).
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import itertools
import math
import re
import threading
import zlib
from abc import abstractmethod
from collections import Counter
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec

from auditor.core import reading
from auditor.core.errors import BadRequest, CallError, DataFileError, MissingDependency
from auditor.core.protocols import LocalClassifier, Reply
from auditor.core.types import digest

WORD = r"[^\W_]+(?:'[^\W_]+)*"  # a run of letters and digits, with apostrophes inside (doesn't)
_words = re.compile(WORD).findall
PRONOUNS = {
    "female": frozenset({"she", "her", "hers", "herself"}),
    "male": frozenset({"he", "him", "his", "himself"}),
    "": frozenset({"they", "them", "their", "theirs", "themself", "themselves"}),
}
NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS"})
PARTS = frozenset({"compound", "nmod", "npadvmod", "poss"})  # nouns inside another noun's phrase
OPENING = frozenset({"the", "a", "an", "my", "your", "our"})
CLOSING = ("V", "MD", "IN", "TO", "PRP", "W", "CC", ",", ".")  # tags before which a noun phrase has ended
ORDINALS = ("first", "second")


class WordList(LocalClassifier):
    """A word list as a two-label (or three-label) classifier of bare texts.

    Two labels follow the sign of the polarity, "positive" from 0 on: ASTRAEA compares labels of pairs and states no
    cut-off. ``scores`` are then ``(polarity + 1) / 2`` and the rest: order-preserving, not a calibrated probability.
    Where ``task`` has the label "neutral", it is that where the polarity is within ``undecided``.
    """

    undecided: float = 0.0

    def __init__(self, *, task: object = None) -> None:
        self._neutral = "neutral" in {str(label).casefold() for label in getattr(task, "labels", ())}
        facts = {"adapter": f"{self.name}.v1", **self.facts(), "neutral": self._neutral}
        self.fingerprint = f"{self.name}:" + digest(facts, size=16)

    @abstractmethod
    def facts(self) -> dict[str, str]:
        """Load the list; return what identifies it."""

    @abstractmethod
    def polarity(self, text: str) -> float:
        """Return the polarity, from -1 to 1; 0 for a text without any listed word."""

    def answer(self, text: str) -> Reply:
        """Return the label, and with two labels the scores."""
        polarity = self.polarity(text)
        label = "positive" if polarity >= 0 else "negative"
        if self._neutral:
            inside = abs(polarity) < self.undecided or polarity == 0
            return Reply(text="neutral" if inside else label)
        score = min(1.0, max(0.0, (polarity + 1) / 2))
        return Reply(text=label, scores={"positive": score, "negative": 1 - score})


class Vader(WordList):
    """VADER; see `WordList`. Its authors call ``compound`` within 0.05 of 0 neutral."""

    name = "vader"
    undecided = 0.05

    def facts(self) -> dict[str, str]:
        """Return the package and its two lists."""
        from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

        self._analyzer = SentimentIntensityAnalyzer()
        listed = {"lexicon": self._analyzer.lexicon_full_filepath, "emoji": self._analyzer.emoji_full_filepath}
        hashes = {name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in listed.items()}
        return {"package": version("vaderSentiment"), **hashes}

    def polarity(self, text: str) -> float:
        """Return the ``compound`` of the package."""
        return float(self._analyzer.polarity_scores(text)["compound"])


class TextBlobModel(WordList):
    """TextBlob; see `WordList`. Raises `MissingDependency` without the extra ``textblob``."""

    name = "textblob"

    def facts(self) -> dict[str, str]:
        """Return the package."""
        try:
            self._blob: Any = importlib.import_module("textblob").TextBlob
        except ImportError as error:
            raise MissingDependency("The model textblob", "textblob", extra="textblob") from error
        return {"package": version("textblob")}

    def polarity(self, text: str) -> float:
        """Return the mean of the listed words."""
        return float(self._blob(text).sentiment.polarity)


def normalise(text: str) -> str:
    """Return ``text`` in lower case, the typographic apostrophe as ``'``."""
    return text.lower().replace("\u2019", "'")


def terms(text: str) -> list[str]:
    """Return the words of ``text`` and the pairs of adjacent words, with repeats.

    >>> terms("It doesn\u2019t work.")
    ['it', "doesn't", 'work', "it doesn't", "doesn't work"]
    """
    words = _words(normalise(text))
    return words + [f"{a} {b}" for a, b in itertools.pairwise(words)]


class _Header(msgspec.Struct):
    format: Literal["auditor-reviews-1"]
    documents: int
    intercept: float
    sublinear_tf: bool


class Reviews(LocalClassifier):
    """The embedded review classifier: "positive" from a probability of 0.5 on, else "negative".

    ``weights`` is a file written by ``tools/train_reviews.py``; the embedded one by default.

    >>> round(Reviews().probability("A dull, lifeless mess."), 1)
    0.0
    """

    name = "reviews"

    def __init__(self, *, weights: str | Path | None = None) -> None:
        path = reading.shipped("embedded", "reviews", "weights.tsv.gz") if weights is None else Path(weights)
        self._table: dict[str, tuple[float, float]] = {}  # term to (inverse document frequency, coefficient)
        try:
            lines = gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()
            header = msgspec.json.decode("".join(lines[:1]), type=_Header)
            for line in lines[1:]:
                term, count, coefficient = line.split("\t")
                idf = math.log((1 + header.documents) / (1 + int(count))) + 1
                self._table[term] = (idf, float(coefficient))
        except (OSError, EOFError, zlib.error, ValueError) as error:
            raise DataFileError(f"{path}: not the weights that tools/train_reviews.py writes ({error})") from error
        self._intercept, self._sublinear = header.intercept, header.sublinear_tf
        self.fingerprint = "reviews:" + hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()[:32]

    def probability(self, text: str) -> float:
        """Return the probability that ``text`` is positive; the intercept's where it has no known term."""
        dot = norm = 0.0
        for term, count in Counter(terms(text)).items():
            entry = self._table.get(term)
            if entry is not None:
                x = entry[0] * ((1.0 + math.log(count)) if self._sublinear else count)
                dot += x * entry[1]
                norm += x * x
        z = self._intercept + (dot / math.sqrt(norm) if norm else 0.0)
        return 1.0 / (1.0 + math.exp(-z))

    def answer(self, text: str) -> Reply:
        """Return the label with its probability."""
        p = self.probability(text)
        return Reply(text="positive" if p >= 0.5 else "negative", scores={"positive": p, "negative": 1.0 - p})


# -- coreference ------------------------------------------------------------------------------------------------------


class Rules(LocalClassifier):
    """Answers "first" or "second": which of the two people named first a pronoun refers to.

    >>> Rules().antecedent("The visitor told my aunt that he would be late.")
    'first'
    """

    name = "rules"
    max_batch = 64

    def __init__(self) -> None:
        from auditor.text.parse import Parser

        self._parser = Parser()
        self._lock = threading.Lock()  # the parser is for one thread at a time
        self.fingerprint = "rules:" + digest(
            {"adapter": "rules.v2", "parser": self._parser.fingerprint, "words": sorted(_genders().items())}, size=16
        )

    def answer(self, text: str) -> Reply | CallError:
        """Return the antecedent."""
        person = self.antecedent(text)
        if person is None:
            return BadRequest("the text has no third-person pronoun after two nouns")
        return Reply(text=person)

    def antecedent(self, text: str) -> str | None:
        """Return "first" or "second", the nearest where neither fits; None without a pronoun after two people."""
        with self._lock:
            parses = self._parser.parse_text(text)
        people: list[str | None] = []
        for _, parse in parses:
            waiting, last = False, ""
            for word, tag, dep in zip(parse.words, parse.tags, parse.deps, strict=True):
                plain = word.lower()
                # The tagger takes some occupations for adjectives (the chief executive): where a phrase ends
                # without a noun, its last word is the noun.
                if waiting and last and tag.startswith(CLOSING):
                    people.append(_genders().get(last))
                    waiting = False
                gender = next((g for g, words in PRONOUNS.items() if plain in words), None)
                if gender is not None and tag in ("PRP", "PRP$") and len(people) >= 2:
                    fits = [i for i in (1, 0) if not gender or people[i] in (None, gender)]
                    return ORDINALS[fits[0] if fits else 1]
                if plain in OPENING:
                    waiting, last = True, ""
                elif tag in NOUNS and dep not in PARTS:
                    people.append(_genders().get(plain))
                    waiting = False
                else:
                    last = plain
        return None


@cache
def _genders() -> dict[str, str]:
    """Return the gender of each noun that the dictionary lists for one gender only."""
    from auditor.perturb import dictionaries

    groups_of: dict[str, set[str]] = {}
    for term in dictionaries.load("gender").terms:
        if term.group in ("female", "male"):
            groups_of.setdefault(term.text.lower(), set()).add(term.group)
    return {word: next(iter(groups)) for word, groups in groups_of.items() if len(groups) == 1}
