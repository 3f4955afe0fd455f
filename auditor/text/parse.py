"""Part-of-speech tags and dependency trees, one parse for each distinct sentence."""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from auditor import data
from auditor.errors import ConfigError, MissingDependency, UnknownPlugin
from auditor.text.split import sentences, strip_breaks, word_set

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_CHARS = 50_000  # longer sentences are parsed up to here
MAX_SENTENCES = 200_000  # kept in memory: about 0.5 kB each
BATCH = 256  # sentences at most
BATCH_TOKENS = 4_000  # and about as many tokens: the parser holds some 12 kB per token while it runs
# Components that neither tags nor trees need, by factory name.
_UNUSED = word_set(
    """ner beam_ner lemmatizer trainable_lemmatizer attribute_ruler senter sentencizer morphologizer
    entity_ruler entity_linker textcat textcat_multilabel spancat spancat_singlelabel span_ruler
    span_finder"""
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LOCK = threading.Lock()  # pipelines are shared by the parsers of a process
_NOT_WEIGHTS = frozenset({"README.md", "figures.json"})


class Bounded(OrderedDict[K, V], Generic[K, V]):
    """A mapping that forgets its least recently used entry when it is full."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def recall(self, key: K) -> V | None:
        """Return the value and mark it as used; None where there is none."""
        value = self.get(key)
        if value is not None:
            self.move_to_end(key)
        return value

    def keep(self, key: K, value: V) -> None:
        """Store, and forget the oldest entry if that makes one too many."""
        self[key] = value
        self.move_to_end(key)
        if len(self) > self.limit:
            self.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Parse:
    """One sentence as one dependency tree, white space left out.

    Attributes
    ----------
    words, tags, deps : tuple of str
        Token, Penn tag and relation to the head, one each per token; the root's relation is ``ROOT``.
    heads : tuple of int
        Index of each token's head; the root is its own head.
    starts : tuple of int
        Where each token begins, in characters of the sentence that was given.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    deps: tuple[str, ...]
    heads: tuple[int, ...]
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Packed:
    """Tokens as small integers; ``tree`` is None as long as only tags were asked for."""

    tokens: array[int]  # tag codes, starts, ends
    tree: array[int] | None  # relation codes, heads


class Parser:
    """Tags and parses English sentences, in batches, each distinct one once.

    A sentence is parsed by itself, always as a single tree, so that its parse depends neither on its
    neighbours in the text nor on those in the batch. Runs of white space and ``<br />`` tags count as one
    space. Not safe for use by several threads at once.

    Parameters
    ----------
    name : str
        ``"embedded"``, the parser that is shipped with the package, or the name or folder of an installed
        spaCy pipeline with a tagger and a parser.
    max_sentences : int
        How many distinct sentences are remembered; the least recently used are forgotten.

    Attributes
    ----------
    asked, tagged, parsed : int
        Sentences asked for, and distinct ones tagged and parsed so far.

    Raises
    ------
    UnknownPlugin
        On first use: no pipeline of this name is installed.
    ConfigError
        On first use: the pipeline has no tagger or no parser.

    Examples
    --------
    >>> Parser().parse(["She saw him."])[0].tags
    ('PRP', 'VBD', 'PRP', '.')
    """

    def __init__(self, name: str = "embedded", *, max_sentences: int = MAX_SENTENCES) -> None:
        self.name = name
        self.asked = self.tagged = self.parsed = 0
        self._memory: Bounded[str, _Packed] = Bounded(max_sentences)
        self._nlp: Any = None
        self._stages: tuple[list[Any], list[Any]] = ([], [])
        self._codes: dict[str, int] = {}
        self._labels: list[str] = []
        self._fingerprint = ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the pipeline's files (weights, settings, vocabulary), 64 hexadecimal digits."""
        if not self._fingerprint:
            self._fingerprint = _hash(_folder(self.name))
        return self._fingerprint

    def parse(self, sentences: Sequence[str]) -> list[Parse]:
        """Parse ``sentences``; the result has one `Parse` for each, in order.

        A sentence without words has an empty parse. Characters after the first `MAX_CHARS` of a sentence are
        left out.
        """
        return self.parse_where(sentences, None)

    def parse_one(self, sentence: str) -> Parse:
        """Parse one sentence."""
        return self.parse([sentence])[0]

    def parse_text(self, text: str) -> list[tuple[int, Parse]]:
        """Split ``text`` and parse its sentences; gives (offset of the sentence in the text, parse)."""
        spans = sentences(text)
        found = self.parse([text[start:end] for start, end in spans])
        return [(start, parse) for (start, _), parse in zip(spans, found, strict=True)]

    def forget(self) -> None:
        """Drop every remembered parse; the counters stay."""
        self._memory.clear()

    def parse_where(
        self, sentences: Sequence[str], wanted: Callable[[int, tuple[str, ...]], bool] | None
    ) -> list[Parse]:
        """Tag ``sentences``, and parse those whose tags are wanted.

        Parsing costs more than tagging, and a check that has seen the tags differ needs no tree.

        Parameters
        ----------
        sentences : sequence of str
            What to parse.
        wanted : callable or None
            Gets the position of a sentence and its tags; where it says False, the `Parse` may come without
            ``deps`` and ``heads`` (empty tuples). None wants all.
        """
        self.asked += len(sentences)
        plain = [plain_sentence(sentence) for sentence in sentences]
        known: dict[str, _Packed] = {}
        docs: dict[str, Any] = {}
        for sentence in dict.fromkeys(plain):
            packed = self._memory.recall(sentence)
            if packed is not None:
                known[sentence] = packed
        self._tag([sentence for sentence in dict.fromkeys(plain) if sentence not in known], known, docs)
        trees: dict[str, None] = {}
        for i, sentence in enumerate(plain):
            if known[sentence].tree is not None or sentence in trees:
                continue
            if wanted is None or wanted(i, self._tags(known[sentence])):
                trees[sentence] = None
        self._tree(list(trees), known, docs)
        for sentence, packed in known.items():
            self._memory.keep(sentence, packed)
        return [self._unpack(given, key, known[key]) for given, key in zip(sentences, plain, strict=True)]

    def _tag(self, new: list[str], known: dict[str, _Packed], docs: dict[str, Any]) -> None:
        """Run the components up to the tagger on sentences not seen before."""
        if not new:
            return
        self._load()
        self.tagged += len(new)
        for sentence, doc in zip(new, self._run(0, map(self._doc, new)), strict=True):
            docs[sentence] = doc
            tags = [self._code(token.tag_) for token in doc]
            starts = [token.idx for token in doc]
            ends = [token.idx + len(token) for token in doc]
            known[sentence] = _Packed(array("H", tags + starts + ends), None)

    def _tree(self, new: list[str], known: dict[str, _Packed], docs: dict[str, Any]) -> None:
        """Run the components after the tagger, on the documents that are there or on new ones."""
        if not new:
            return
        self._load()
        self.parsed += len(new)
        missing = [sentence for sentence in new if sentence not in docs]
        docs.update(zip(missing, self._run(0, map(self._doc, missing)), strict=True))
        found = self._run(1, [docs[sentence] for sentence in new])
        for sentence, doc in zip(new, found, strict=True):
            deps = [self._code(token.dep_) for token in doc]
            heads = [token.head.i for token in doc]
            known[sentence] = _Packed(known[sentence].tokens, array("H", deps + heads))

    def _doc(self, sentence: str) -> Any:
        """Tokenise one sentence and forbid sentence boundaries inside it."""
        doc = self._nlp.make_doc(sentence)
        for token in islice(doc, 1, None):
            token.is_sent_start = False
        return doc

    def _run(self, stage: int, docs: Iterable[Any]) -> list[Any]:
        """Run one stage on ``docs``, sentences of like length together; the order is kept."""
        with _LOCK:
            todo = list(docs)
            order = sorted((i for i in range(len(todo)) if len(todo[i])), key=lambda i: len(todo[i]))
            for batch in _batches([todo[i] for i in order]):
                for component in self._stages[stage]:
                    batch = list(component.pipe(batch, batch_size=BATCH))  # annotates in place
            return todo

    def _code(self, label: str) -> int:
        code = self._codes.get(label)
        if code is None:
            code = self._codes[label] = len(self._labels)
            self._labels.append(sys.intern(label))
        return code

    def _tags(self, packed: _Packed) -> tuple[str, ...]:
        size = len(packed.tokens) // 3
        return tuple(map(self._labels.__getitem__, packed.tokens[:size]))

    def _unpack(self, given: str, plain: str, packed: _Packed) -> Parse:
        tokens, tree = packed.tokens, packed.tree
        size = len(tokens) // 3
        starts, ends = tokens[size : 2 * size], tokens[2 * size :]
        return Parse(
            words=tuple(map(sys.intern, (plain[a:b] for a, b in zip(starts, ends, strict=True)))),
            tags=self._tags(packed),
            deps=() if tree is None else tuple(map(self._labels.__getitem__, tree[:size])),
            heads=() if tree is None else tuple(tree[size:]),
            starts=_moved(given, plain, starts),
        )

    def _load(self) -> None:
        if self._nlp is None:
            self._nlp = _pipeline(self.name)
            components = list(self._nlp.pipeline)
            cut = 1 + max(i for i, (name, _) in enumerate(components) if self._factory(name) == "tagger")
            if any(self._factory(name) == "parser" for name, _ in components[:cut]):
                cut = len(components)
            stages = [component for _, component in components]
            self._stages = (stages[:cut], stages[cut:])

    def _factory(self, component: str) -> str:
        return str(self._nlp.get_pipe_meta(component).factory)


def _batches(docs: list[Any]) -> Iterator[list[Any]]:
    """Cut ``docs`` into runs of at most `BATCH` documents and about `BATCH_TOKENS` tokens."""
    batch: list[Any] = []
    tokens = 0
    for doc in docs:
        if batch and (len(batch) == BATCH or tokens + len(doc) > BATCH_TOKENS):
            yield batch
            batch, tokens = [], 0
        batch.append(doc)
        tokens += len(doc)
    if batch:
        yield batch


def plain_sentence(sentence: str) -> str:
    """Give the sentence as the parser sees it: runs of white space and ``<br />`` tags are one space."""
    text = " ".join(strip_breaks(sentence).split())
    if not text.isascii():
        # A lone surrogate cannot be written as UTF-8, which spaCy does to every word.
        text = _SURROGATE.sub("\ufffd", text)
    return text[:MAX_CHARS]


def _moved(given: str, plain: str, starts: Sequence[int]) -> tuple[int, ...]:
    """Offsets in ``plain`` as offsets in ``given``; both hold the same visible characters in a row."""
    if given.startswith(plain):
        return tuple(starts)
    visible = [i for i, c in enumerate(strip_breaks(given)) if not c.isspace()]
    rank, ranks = 0, []
    for c in plain:
        ranks.append(rank)
        rank += not c.isspace()
    return tuple(visible[ranks[start]] for start in starts)


def _embedded() -> Path:
    folder = data.path("embedded", "parser")
    if not (folder / "config.cfg").is_file():
        raise ConfigError(
            f"the embedded parser is not in {folder}; the installation is incomplete. "
            "Run: pip install --force-reinstall llm-bias-auditor"
        )
    return folder


def _folder(name: str) -> Path:
    """Find the folder of a pipeline: the embedded one, a path, or an installed package."""
    if name == "embedded":
        return _embedded()
    if (Path(name) / "config.cfg").is_file():
        return Path(name)
    spacy = _spacy()
    if not spacy.util.is_package(name):
        raise UnknownPlugin(
            "parser",
            name,
            {"embedded", *spacy.util.get_installed_models()},
            f"To install a spaCy pipeline, run: python -m spacy download {name}",
        )
    package = Path(spacy.util.get_package_path(name))
    # A package holds its data in a folder NAME-VERSION.
    return next((found.parent for found in sorted(package.glob("*/config.cfg"))), package)


@lru_cache(maxsize=2)
def _pipeline(name: str) -> Any:
    """Load a spaCy pipeline without what is not needed; shared, since loading takes a second."""
    spacy, folder = _spacy(), _folder(name)
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


def _spacy() -> Any:
    try:
        import spacy
    except ImportError as error:
        raise MissingDependency("the dependency invariant", "spacy") from error
    return spacy


def _hash(folder: Path) -> str:
    """SHA-256 over names and contents of the files below ``folder`` that shape a parse."""
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.name in _NOT_WEIGHTS or "__pycache__" in path.parts:
            continue
        total.update(path.relative_to(folder).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
