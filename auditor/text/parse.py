"""Part-of-speech tags and dependency trees, one parse for each distinct sentence."""

from __future__ import annotations

import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice
from typing import Any

from auditor.text.pipelines import fingerprint, load
from auditor.text.split import sentences, strip_breaks

MAX_CHARS = 50_000  # longer sentences are parsed up to here
MAX_SENTENCES = 50_000  # kept in memory: about 1.5 kB each
BATCH_TOKENS = 4_000  # parsed at once: the parser holds some 12 kB per token while it runs
_SURROGATE = re.compile("[\ud800-\udfff]")
_LOCK = threading.Lock()  # pipelines are shared by the parsers of a process


@dataclass(frozen=True, slots=True)
class Parse:
    """One sentence as one dependency tree, white space left out; one entry for each token."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    deps: tuple[str, ...]
    heads: tuple[int, ...]
    starts: tuple[int, ...]

    def children(self, i: int) -> list[int]:
        """The tokens whose head is ``i``, in order."""
        return [child for child, head in enumerate(self.heads) if head == i != child]


class Parser:
    """Tags and parses English sentences, in batches, each distinct one once; not safe for several threads at once.

    A sentence is parsed by itself, always as a single tree: its parse depends neither on its neighbours in the text nor
    on those in the batch. Runs of white space and ``<br />`` tags count as one space. ``name`` is "embedded", or the
    name or folder of a spaCy pipeline. The first use raises `UnknownPlugin` or `ConfigError` where there is none that
    will do.
    """

    def __init__(self, name: str = "embedded", *, max_sentences: int = MAX_SENTENCES) -> None:
        self.name = name
        self.asked = self.parsed = 0  # sentences asked for; distinct ones parsed
        self._most = max_sentences
        self._memory: OrderedDict[str, Parse] = OrderedDict()  # the least recently used first

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the pipeline's files (weights, settings, vocabulary), 64 hexadecimal digits."""
        return fingerprint(self.name)

    def parse(self, sentences: Sequence[str]) -> list[Parse]:
        """Parse ``sentences``; the result has one `Parse` for each, in order."""
        self.asked += len(sentences)
        plain = [plain_sentence(sentence) for sentence in sentences]
        asked = dict.fromkeys(plain)
        known = {sentence: self._memory[sentence] for sentence in asked if sentence in self._memory}
        new = [sentence for sentence in asked if sentence not in known]
        known |= zip(new, self._run(new), strict=True)
        for sentence in asked:
            self._memory[sentence] = known[sentence]
            self._memory.move_to_end(sentence)
        while len(self._memory) > self._most:
            self._memory.popitem(last=False)
        return [_placed(known[key], own, key) for own, key in zip(sentences, plain, strict=True)]

    def parse_text(self, text: str) -> list[tuple[int, Parse]]:
        """Split ``text`` and parse its sentences; gives (offset of the sentence in the text, parse)."""
        spans = sentences(text)
        parses = self.parse([text[start:end] for start, end in spans])
        return [(start, parse) for (start, _), parse in zip(spans, parses, strict=True)]

    def _run(self, new: list[str]) -> list[Parse]:
        """Parse sentences that are not remembered, in batches of like length."""
        if not new:
            return []
        nlp = load(self.name)
        from spacy.training.batchers import minibatch_by_words

        self.parsed += len(new)
        docs = [nlp.make_doc(sentence) for sentence in new]
        for doc in docs:
            for token in islice(doc, 1, None):  # one sentence, one tree
                token.is_sent_start = False
        with _LOCK:
            for batch in minibatch_by_words(sorted(filter(len, docs), key=len), BATCH_TOKENS):
                for _ in nlp.pipe(batch):  # annotates in place
                    pass
        return [_read(doc) for doc in docs]


def _read(doc: Any) -> Parse:
    return Parse(
        words=tuple(sys.intern(token.text) for token in doc),
        tags=tuple(sys.intern(token.tag_) for token in doc),
        deps=tuple(sys.intern(token.dep_) for token in doc),
        heads=tuple(token.head.i for token in doc),
        starts=tuple(token.idx for token in doc),
    )


def plain_sentence(sentence: str) -> str:
    """Give the sentence as the parser sees it: runs of white space and ``<br />`` tags are one space."""
    text = " ".join(strip_breaks(sentence).split())
    if not text.isascii():
        # A lone surrogate cannot be written as UTF-8, which spaCy does to every word.
        text = _SURROGATE.sub("\ufffd", text)
    return text[:MAX_CHARS]


def _placed(parse: Parse, sentence: str, plain: str) -> Parse:
    """Move offsets in ``plain`` to ``sentence``; both hold the same visible characters in a row."""
    if sentence.startswith(plain):
        return parse
    visible = [i for i, c in enumerate(strip_breaks(sentence)) if not c.isspace()]
    ranks = [*accumulate((not c.isspace() for c in plain), initial=0)]
    return replace(parse, starts=tuple(visible[ranks[start]] for start in parse.starts))
