"""Part-of-speech tags and dependency trees, one parse for each distinct sentence, by spaCy pipelines."""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from auditor.core import reading
from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.text.english import word_list, word_set

MAX_CHARS = 50_000  # longer sentences are parsed up to here
MAX_SENTENCES = 50_000  # kept in memory: about 1.5 kB each
BATCH_TOKENS = 4_000  # parsed at once: the parser holds some 12 kB per token while it runs
# Components that neither tags nor trees need, by factory name.
_UNUSED = word_set(
    """ner beam_ner lemmatizer trainable_lemmatizer attribute_ruler senter sentencizer morphologizer
    entity_ruler entity_linker textcat textcat_multilabel spancat spancat_singlelabel span_ruler
    span_finder"""
)
_NOT_WEIGHTS = frozenset({"README.md", "figures.json"})
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
        self._most = max_sentences
        self._memory: OrderedDict[str, Parse] = OrderedDict()  # the least recently used first

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over names and contents of the pipeline's files that shape a parse, 64 hexadecimal digits."""
        folder = _folder(self.name)
        total = hashlib.sha256()
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            if path.name in _NOT_WEIGHTS or "__pycache__" in path.parts:
                continue
            total.update(path.relative_to(folder).as_posix().encode() + b"\0")
            total.update(hashlib.sha256(path.read_bytes()).digest())
        return total.hexdigest()

    def parse(self, sentences: Sequence[str]) -> list[Parse]:
        """Parse ``sentences``; the result has one `Parse` for each, in order."""
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
        nlp = _pipeline(self.name)
        from spacy.training.batchers import minibatch_by_words

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


def _folder(name: str) -> Path:
    """Find the folder of a pipeline: the embedded one, a path, or an installed package."""
    if name == "embedded":
        folder = reading.shipped("embedded", "parser")
        if not (folder / "config.cfg").is_file():
            raise ConfigError(
                f"the embedded parser is not in {folder}; the installation is incomplete.",
                below="Run: pip install --force-reinstall llm-bias-auditor",
            )
        return folder
    if (Path(name) / "config.cfg").is_file():
        return Path(name)
    import spacy

    if not spacy.util.is_package(name):
        hint = f"To install a spaCy pipeline, run: python -m spacy download {name}"
        raise UnknownPlugin("parser", name, {"embedded", *spacy.util.get_installed_models()}, hint)
    package = Path(spacy.util.get_package_path(name))
    # A package holds its data in a folder NAME-VERSION.
    return next((config.parent for config in sorted(package.glob("*/config.cfg"))), package)


def without_torch() -> None:
    """Import spaCy without PyTorch, which takes 230 MiB and which the embedded parser does not use."""
    if {"spacy", "torch"} & sys.modules.keys():
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        import spacy  # noqa: F401
    finally:
        del sys.modules["torch"]


@lru_cache(maxsize=2)
def _pipeline(name: str) -> Any:
    """Load a spaCy pipeline without what is not needed; shared, since loading takes a second."""
    import spacy

    folder = _folder(name)
    config = spacy.util.load_config(folder / "config.cfg")
    factories = {part: block.get("factory") for part, block in config["components"].items()}
    names = config["nlp"]["pipeline"]
    for needed in ("tagger", "parser"):
        if needed not in [factories.get(part) for part in names]:
            raise ConfigError(
                f"the spaCy pipeline {name!r} has no {needed}; its components: {', '.join(names) or 'none'}. "
                "Use --parser embedded, or a pipeline that has one."
            )
    return spacy.load(folder, exclude=[part for part, made in factories.items() if made in _UNUSED])


# -- sentences, by punctuation alone -------------------------------------------------------------------------


# One leading character class lets the regular-expression engine skip ordinary text at full speed. The
# look-behind against two stops in a row keeps long runs of dots linear.
_GAP = r"(?:\s|<[bB][rR]\s*/?>)"
_CANDIDATE = re.compile(
    rf"""
    [.!?…\n\r\u2028\u2029<]
    (?:
      (?<=[.!?…])(?<![.!?…][.!?…])(?P<more>[.!?…]*+)
      (?:(?P<close>["'”’)\]}}»]*+)(?P<gap>{_GAP}++) | (?<=[a-z][a-z][.!?])(?=[A-Z][a-z]))
    | (?<=[\n\r\u2028\u2029]){_GAP}*+
    | (?<=<)[bB][rR]\s*/?>{_GAP}*+
    )
    """,
    re.VERBOSE,
)
_BREAK = re.compile(r"<[bB][rR]\s*/?>|\n[^\S\n]*\n|\u2029|\r\n?[^\S\n\r]*\r")
_TAG = re.compile(r"<[bB][rR]\s*/?>")
_OPENERS = "\"'“‘([{«*_-–— "
_CLOSERS = "\"'”’)]}»"
_REACH = 24  # characters before a stop that can hold an abbreviation
_CONTENT = re.compile(r"[^\W_]")
_INITIALS = re.compile(r"[A-Za-z](?:\.[A-Za-z])+")
_STOPS = ".!?…"
_GOES_ON = tuple(",;:-–—")
_SHORT = word_set("is it me us so to do go up in on of he we my no be by ok tv")
_NEXT_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?")

_BEFORE_NAME, _BEFORE_NUMBER = word_list("before_a_name"), word_list("before_a_number")
_MAY_END, _STARTERS = word_list("may_end"), word_list("starters")


def sentences(text: str) -> list[tuple[int, int]]:
    """Split ``text`` into sentences: spans ``[start, end)`` in characters that tile the text."""
    spans: list[tuple[int, int]] = []
    start, scanned, size = 0, 0, len(text)
    letters = ink = False  # seen since start; looked for once per character, so that this stays linear
    for mark in _CANDIDATE.finditer(text):
        at, end = mark.span()
        letters = letters or _CONTENT.search(text, scanned, at) is not None
        ink = ink or letters or text[at] in _STOPS or (scanned < at and not text[scanned:at].isspace())
        scanned = end
        if end >= size:
            break
        if ink and _ends(text, mark, start, letters):
            spans.append((start, end))
            start = end
            letters = ink = False
    if start < size:
        spans.append((start, size))
    return spans


def strip_breaks(text: str) -> str:
    """Put spaces in the place of ``<br />`` tags, so that every character keeps its offset."""
    if "<" not in text:
        return text
    return _TAG.sub(lambda tag: " " * (tag.end() - tag.start()), text)


def _ends(text: str, mark: re.Match[str], start: int, letters: bool) -> bool:
    """Whether the candidate ends the sentence that began at ``start``; ``letters``: it has some."""
    at, end = mark.span()
    if text[at] not in _STOPS:
        if _BREAK.search(text, at, end):
            return True
        return not (text[end].islower() or text[max(start, at - _REACH) : at].rstrip()[-1:] in _GOES_ON)
    gap = mark["gap"] or ""
    if len(gap) > 1 and _BREAK.search(gap):
        return True
    if not letters:  # nothing but punctuation so far: "... and", ". . ."
        return False
    after = end
    while after < len(text) and text[after] in _OPENERS:
        after += 1
    following = text[after : after + 1]
    stop = text[at] + mark["more"]
    if "!" in stop or "?" in stop:
        return not (mark["close"] and following.islower())
    if len(stop) > 1 or stop == "…":
        return following.isupper()
    return _full_stop_ends(text, at, start, after, following)


def _full_stop_ends(text: str, at: int, start: int, after: int, following: str) -> bool:
    """Whether the single full stop at ``at`` ends a sentence; ``following`` is the next letter or digit."""
    word = text[max(start, at - _REACH) : at].rsplit(None, 1)
    if not word or text[at - 1].isspace():  # tokenised text: the stop stands alone
        return True
    plain = word[-1].strip(_OPENERS + _CLOSERS)
    low = plain.lower()
    if low in _BEFORE_NAME:
        return False
    if low in _BEFORE_NUMBER and following.isdigit():
        return False
    doubtful = low in _MAY_END or (len(plain) == 1 and plain.isalpha()) or _INITIALS.fullmatch(plain)
    if following.islower():
        return not doubtful and (len(plain) > 2 or low in _SHORT)
    if doubtful:
        word_after = _NEXT_WORD.match(text, after)
        return word_after is None or word_after[0].lower() in _STARTERS
    return not (plain.isdigit() and len(plain) <= 2 and text[max(start, at - _REACH) : at].strip() == plain)
