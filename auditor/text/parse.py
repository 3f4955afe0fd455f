"""Part-of-speech tags and dependency trees, one parse for each distinct sentence."""

from __future__ import annotations

import re
import sys
import threading
from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from auditor.text.pipelines import batches, fingerprint, load
from auditor.text.split import sentences, strip_breaks

if TYPE_CHECKING:
    from auditor.text.batch_parser import Tagged, Together

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MAX_CHARS = 50_000  # longer sentences are parsed up to here
MAX_SENTENCES = 200_000  # kept in memory: about 0.5 kB each
FEW = 12  # sentences at once: below, spaCy's own loop is faster than the shared path
BATCH = 256  # sentences at most
BATCH_TOKENS = 4_000  # and about as many tokens: the parser holds some 12 kB per token while it runs
_SURROGATE = re.compile("[\ud800-\udfff]")
_LOCK = threading.Lock()  # pipelines are shared by the parsers of a process


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
    """One sentence as one dependency tree, white space left out; one entry for each token.

    ``tags`` are Penn's; the root's relation (``deps``) is ``ROOT``, and it is its own head. ``starts`` count characters
    of the sentence as it was asked for.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    deps: tuple[str, ...]
    heads: tuple[int, ...]
    starts: tuple[int, ...]

    def children(self, i: int) -> list[int]:
        """The tokens whose head is ``i``, in order."""
        return [child for child, head in enumerate(self.heads) if head == i != child]


@dataclass(frozen=True, slots=True)
class _Packed:
    """Tokens as small integers; ``tree`` is None as long as only tags were asked for."""

    tokens: array[int]  # tag codes, starts, ends
    tree: array[int] | None  # relation codes, heads


class _Work(NamedTuple):
    """A sentence under way: spaCy's document, and its vectors where it goes the shared path."""

    doc: Any
    tagged: Tagged | None


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
    shared : bool
        Whether what similar sentences have in common is computed once (`auditor.text.batch_parser`); the parses are
        the same, and False leaves all to spaCy.

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

    def __init__(self, name: str = "embedded", *, max_sentences: int = MAX_SENTENCES, shared: bool = True) -> None:
        self.name, self.shared = name, shared
        self.asked = self.tagged = self.parsed = 0  # sentences asked for; distinct ones tagged, and parsed
        self._memory: Bounded[str, _Packed] = Bounded(max_sentences)
        self._nlp: Any = None
        self._stages: tuple[list[Any], list[Any]] = ([], [])
        self._together: Together | None = None
        self._tag_codes: Any = None
        self._relation_codes: Any = None
        self._codes: dict[str, int] = {}
        self._labels: list[str] = []

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the pipeline's files (weights, settings, vocabulary), 64 hexadecimal digits."""
        return fingerprint(self.name)

    def parse(self, sentences: Sequence[str]) -> list[Parse]:
        """Parse ``sentences``; the result has one `Parse` for each, in order.

        A sentence without words has an empty parse. Characters after the first `MAX_CHARS` of a sentence are
        left out.
        """
        return self.parse_where(sentences, None)

    def parse_text(self, text: str) -> list[tuple[int, Parse]]:
        """Split ``text`` and parse its sentences; gives (offset of the sentence in the text, parse)."""
        spans = sentences(text)
        parses = self.parse([text[start:end] for start, end in spans])
        return [(start, parse) for (start, _), parse in zip(spans, parses, strict=True)]

    def parse_where(
        self, sentences: Sequence[str], wanted: Callable[[int, tuple[str, ...]], bool] | None
    ) -> list[Parse]:
        """Tag ``sentences``, and parse those whose tags are wanted.

        Parsing costs more than tagging, and a check that has seen the tags differ needs no tree. ``wanted`` gets the
        position of a sentence and its tags; where it says False, the `Parse` may come without ``deps`` and ``heads``
        (empty tuples). None wants all.
        """
        self.asked += len(sentences)
        plain = [plain_sentence(sentence) for sentence in sentences]
        work: dict[str, _Work] = {}
        recalled = {sentence: self._memory.recall(sentence) for sentence in dict.fromkeys(plain)}
        known = {sentence: packed for sentence, packed in recalled.items() if packed is not None}
        self._tag([sentence for sentence, packed in recalled.items() if packed is None], known, work)
        trees: dict[str, None] = {}
        for i, sentence in enumerate(plain):
            if known[sentence].tree is not None or sentence in trees:
                continue
            if wanted is None or wanted(i, self._tags(known[sentence])):
                trees[sentence] = None
        self._tree(list(trees), known, work)
        for sentence, packed in known.items():
            self._memory.keep(sentence, packed)
        return [self._unpack(own, key, known[key]) for own, key in zip(sentences, plain, strict=True)]

    def _tag(self, new: list[str], known: dict[str, _Packed], work: dict[str, _Work]) -> None:
        """Run the components up to the tagger on sentences not seen before."""
        if not new:
            return
        self._load()
        self.tagged += len(new)
        self._read(new, work)
        for sentence in new:
            one = work[sentence]
            if one.tagged is None:
                tags = array("H", [self._code(token.tag_) for token in one.doc])
            else:
                tags = array("H", self._tag_codes[one.tagged.tags].tobytes())
            where = one.doc.to_array(["IDX", "LENGTH"]).astype("uint16").reshape(-1, 2)
            starts, ends = where[:, 0], where[:, 0] + where[:, 1]
            known[sentence] = _Packed(tags + array("H", starts.tobytes()) + array("H", ends.tobytes()), None)

    def _tree(self, new: list[str], known: dict[str, _Packed], work: dict[str, _Work]) -> None:
        """Run the components after the tagger, on what there is or anew."""
        if not new:
            return
        self._load()
        self.parsed += len(new)
        self._read([sentence for sentence in new if sentence not in work], work)
        left = []
        together = [sentence for sentence in new if work[sentence].tagged is not None]
        if self._together is not None:
            with _LOCK:
                trees = self._together.trees([one.tagged for s in together if (one := work[s]).tagged])
            for sentence, tree in zip(together, trees, strict=True):
                if tree is None:
                    left.append(sentence)
                else:
                    heads, labels = tree
                    codes = array("H", self._relation_codes[labels].tobytes())
                    tokens = known[sentence].tokens
                    known[sentence] = _Packed(tokens, codes + array("H", heads.astype("uint16").tobytes()))
        self._run(0, [work[sentence].doc for sentence in left])
        left += [sentence for sentence in new if work[sentence].tagged is None]
        for sentence, doc in zip(left, self._run(1, [work[s].doc for s in left]), strict=True):
            deps = [self._code(token.dep_) for token in doc]
            deps += [token.head.i for token in doc]
            known[sentence] = _Packed(known[sentence].tokens, array("H", deps))

    def _read(self, new: list[str], work: dict[str, _Work]) -> None:
        """Tokenise and tag: many sentences by the shared path, a few, and those it does not take, by spaCy."""
        for sentence in new:
            work[sentence] = _Work(self._nlp.make_doc(sentence), None)
        alone = new
        if self._together is not None and len(new) >= FEW:
            takes = self._together.takes
            many = [sentence for sentence in new if takes(work[sentence].doc)]
            with _LOCK:
                rows = self._together.tag([work[sentence].doc for sentence in many])
            for sentence, tagged in zip(many, rows, strict=True):
                work[sentence] = _Work(work[sentence].doc, tagged)
            alone = [sentence for sentence in new if work[sentence].tagged is None]
        self._run(0, [work[sentence].doc for sentence in alone])

    def _run(self, stage: int, docs: list[Any]) -> list[Any]:
        """Run one stage on ``docs``, sentences of like length together; the order is kept."""
        with _LOCK:
            written = [doc for doc in docs if len(doc)]
            for run in batches([len(doc) for doc in written], tokens=BATCH_TOKENS, most=BATCH):
                batch = [written[i] for i in run]
                if stage == 0:
                    for doc in batch:  # one sentence, one tree
                        for token in islice(doc, 1, None):
                            token.is_sent_start = False
                for component in self._stages[stage]:
                    batch = list(component.pipe(batch, batch_size=BATCH))  # annotates in place
            return docs

    def _code(self, label: str) -> int:
        code = self._codes.get(label)
        if code is None:
            code = self._codes[label] = len(self._labels)
            self._labels.append(sys.intern(label))
        return code

    def _tags(self, packed: _Packed) -> tuple[str, ...]:
        size = len(packed.tokens) // 3
        return tuple(map(self._labels.__getitem__, packed.tokens[:size]))

    def _unpack(self, sentence: str, plain: str, packed: _Packed) -> Parse:
        tokens, tree = packed.tokens, packed.tree
        size = len(tokens) // 3
        starts, ends = tokens[size : 2 * size], tokens[2 * size :]
        return Parse(
            words=tuple(map(sys.intern, (plain[a:b] for a, b in zip(starts, ends, strict=True)))),
            tags=self._tags(packed),
            deps=() if tree is None else tuple(map(self._labels.__getitem__, tree[:size])),
            heads=() if tree is None else tuple(tree[size:]),
            starts=_moved(sentence, plain, starts),
        )

    def _load(self) -> None:
        if self._nlp is None:
            self._nlp = load(self.name)
            components = list(self._nlp.pipeline)
            cut = 1 + max(i for i, (name, _) in enumerate(components) if self._factory(name) == "tagger")
            if any(self._factory(name) == "parser" for name, _ in components[:cut]):
                cut = len(components)
            stages = [component for _, component in components]
            import numpy

            from auditor.text.batch_parser import Together

            self._stages = (stages[:cut], stages[cut:])
            self._together = Together.find(stages) if self.shared else None
            if self._together is not None:
                self._tag_codes = numpy.array([self._code(tag) for tag in self._together.tags], "uint16")
                codes = [self._code(relation) for relation in self._together.relations]
                self._relation_codes = numpy.array(codes, "uint16")

    def _factory(self, component: str) -> str:
        return str(self._nlp.get_pipe_meta(component).factory)


def plain_sentence(sentence: str) -> str:
    """Give the sentence as the parser sees it: runs of white space and ``<br />`` tags are one space."""
    text = " ".join(strip_breaks(sentence).split())
    if not text.isascii():
        # A lone surrogate cannot be written as UTF-8, which spaCy does to every word.
        text = _SURROGATE.sub("\ufffd", text)
    return text[:MAX_CHARS]


def _moved(sentence: str, plain: str, starts: Sequence[int]) -> tuple[int, ...]:
    """Offsets in ``plain`` as offsets in ``sentence``; both hold the same visible characters in a row."""
    if sentence.startswith(plain):
        return tuple(starts)
    visible = [i for i, c in enumerate(strip_breaks(sentence)) if not c.isspace()]
    rank, ranks = 0, []
    for c in plain:
        ranks.append(rank)
        rank += not c.isspace()
    return tuple(visible[ranks[start]] for start in starts)
