"""Steps in the trees of parsed sentences: the tokens of a text in one row, and the verbs that agree with a subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.text.english import plural_verb, word_list
from auditor.text.parse import Parse

SUBJECT = ("nsubj", "nsubj:pass", "nsubj:outer")
SUBJECTS = frozenset(("nsubj", "nsubjpass", "nsubj:pass"))
_AUXILIARIES = frozenset(("aux", "auxpass", "aux:pass", "cop"))
_MARKS = frozenset("*_")
_VERBAL = word_list("verbs_as_nouns")
_OPENS = frozenset(("IN", "DT", "PRP", "PRP$", "TO", "RB", "WRB", "WP"))
_STOPS = frozenset(";:.!?")


class Tokens:
    """The tokens of all sentences in one row."""

    def __init__(self, parsed: Sequence[tuple[int, Parse]]) -> None:
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
    while i < n and parse.words[i] not in _STOPS and parse.deps[i] not in SUBJECTS:
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
