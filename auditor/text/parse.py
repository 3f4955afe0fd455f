"""Sentences, their tags and dependency trees, by spaCy pipelines, each distinct one once; and steps in the trees."""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from auditor.core import reading
from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.types import Span
from auditor.text.english import plural_verb, word_list, word_set

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


Parsed = Sequence[tuple[int, Parse]]  # sentences, each with its offset in the text


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

    def parse_spans(self, spans: Mapping[str, Sequence[Span]]) -> dict[str, Parsed]:
        """Parse the sentences at ``spans`` of some texts, each distinct one once; the result is by text."""
        distinct = list(dict.fromkeys(text[a:b] for text, own in spans.items() for a, b in own))
        parses = dict(zip(distinct, self.parse(distinct), strict=True))
        return {text: [(a, parses[text[a:b]]) for a, b in own] for text, own in spans.items()}

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


# -- steps in trees: the tokens of a text in one row, and the verbs that agree with a subject ----------------


SUBJECT = ("nsubj", "nsubj:pass", "nsubj:outer")
SUBJECTS = frozenset(("nsubj", "nsubjpass", "nsubj:pass"))
_AUXILIARIES = frozenset(("aux", "auxpass", "aux:pass", "cop"))
_MARKS = frozenset("*_")
_VERBAL = word_list("verbs_as_nouns")
_OPENS = frozenset(("IN", "DT", "PRP", "PRP$", "TO", "RB", "WRB", "WP"))
_CLAUSE_ENDS = frozenset(";:.!?")


class Tokens:
    """The tokens of all sentences in one row."""

    def __init__(self, parsed: Parsed) -> None:
        self.low: list[str] = []
        self.tag: list[str] = []
        self.dep: list[str] = []
        self.head: list[int] = []
        self.span: list[tuple[int, int]] = []
        self.sentence: list[int] = []
        self.quoted: list[bool] = []
        self.title: list[bool] = []
        opened = False
        for number, (offset, parse) in enumerate(parsed):
            base = len(self.low)
            for word, tag, dep, head, start in zip(
                parse.words, parse.tags, parse.deps, parse.heads, parse.starts, strict=True
            ):
                if word in '"“”':
                    opened = word == "“" or (word != "”" and not opened)
                self.low.append(word.lower())
                self.title.append(word[:1].isupper())
                self.tag.append(tag)
                self.dep.append(dep)
                self.head.append(base + head)
                self.span.append((offset + start, offset + start + len(word)))
                self.sentence.append(number)
                self.quoted.append(opened)
        self.children: list[list[int]] = [[] for _ in self.low]
        for i, head in enumerate(self.head):
            if head != i:
                self.children[head].append(i)

    def child(self, i: int, *deps: str) -> int | None:
        """The first dependent of ``i`` with one of these relations."""
        return next((c for c in self.children[i] if self.dep[c] in deps), None)

    def words(self, i: int, *deps: str) -> set[str]:
        """The dependents of ``i`` with one of these relations."""
        return {self.low[c] for c in self.children[i] if self.dep[c] in deps}

    def above(self, i: int) -> Iterator[int]:
        """The heads of ``i``, the nearest first."""
        for _ in range(len(self.low)):
            if self.head[i] == i:
                return
            i = self.head[i]
            yield i

    def clause(self, i: int) -> int:
        """The verb (or predicate) whose clause ``i`` stands in."""
        at = i
        for h in self.above(i):
            at = h
            if self.tag[h].startswith(("VB", "MD")) or self.child(h, "cop", *SUBJECT) is not None:
                break
        return at

    def doer(self, verb: int) -> int | None:
        """The subject of ``verb``, its own or that of the verb it is joined to."""
        own = self.child(verb, *SUBJECT)
        while own is None and self.dep[verb] in {"conj", "xcomp"} and self.head[verb] != verb:
            done = self.dep[verb] == "xcomp"
            verb = self.head[verb]
            own = (self.child(verb, "obj") if done else None) or self.child(verb, *SUBJECT)
        return own


def agreeing_verbs(parse: Parse, subject: int) -> Iterator[int]:
    """Yield the tokens whose form goes with a third-person singular ``subject`` (*she sits and reads*: both verbs)."""
    yield from sorted({*_of_tree(parse, subject), *_of_order(parse, subject)})


def _of_tree(parse: Parse, subject: int) -> Iterator[int]:
    """The verb that the subject hangs on, and those coordinated with it."""
    if parse.deps[subject] not in SUBJECTS:
        return
    todo, first = [parse.heads[subject]], True
    while todo:
        verb = todo.pop()
        own = parse.children(verb)
        if not first and any(parse.deps[i] in SUBJECTS or parse.deps[i] == "expl" for i in own):
            continue
        for i in (verb, *own):
            if (i == verb or parse.deps[i] in _AUXILIARIES) and _agrees(parse, i) and (first or i > subject):
                yield i
        first = False
        todo += [i for i in own if parse.deps[i] == "conj" and i > subject]


def _of_order(parse: Parse, subject: int) -> Iterator[int]:
    """Verbs that the order of words gives away: right after the subject, and after "and"."""
    n = len(parse.words)
    i = subject + 1
    while i < n and (parse.words[i] in _MARKS or parse.tags[i] == "RB"):
        i += 1
    if i < n and _agrees(parse, i):
        yield i
    while i < n and parse.words[i] not in _CLAUSE_ENDS and parse.deps[i] not in SUBJECTS:
        if parse.tags[i] == "CC" and i + 1 < n:
            j = i + 1
            while j + 1 < n and parse.tags[j] == "RB":
                j += 1
            form = plural_verb(parse.words[j])
            verbal = parse.tags[j] == "NNS" and _may_be_verb(parse, i, j)
            if form is not None and (_agrees(parse, j) or verbal):
                yield j
        i += 1


def _may_be_verb(parse: Parse, link: int, i: int) -> bool:
    """Whether a plural noun after "and" is more likely a verb: after a verb, or before what an object begins with."""
    before, after = parse.tags[link - 1], parse.tags[i + 1] if i + 1 < len(parse.tags) else ""
    if before[:2] in ("VB", "JJ", "RB") and parse.heads[i] != i + 1:
        return before[:2] == "VB" or after in _OPENS
    if before == "," and after[:2] in (*_OPENS, "NN", "JJ", "VB"):
        return True
    return parse.words[i].lower() in _VERBAL or (before in ("NN", "PRP", "RP", "NNP") and after in _OPENS)


def _agrees(parse: Parse, i: int) -> bool:
    low = parse.words[i].lower()
    return parse.tags[i] == "VBZ" or low == "was"
