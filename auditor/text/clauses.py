"""Which verbs agree with a subject, read from a parse."""

from __future__ import annotations

from collections.abc import Iterator

from auditor.text.english import plural_verb
from auditor.text.parse import Parse

SUBJECTS = frozenset(("nsubj", "nsubjpass", "nsubj:pass"))
_AUXILIARIES = frozenset(("aux", "auxpass", "aux:pass", "cop"))
_MARKS = frozenset("*_")
_VERBAL = frozenset(
    ("talks", "works", "runs", "walks", "lives", "helps", "cooks", "reads", "sleeps", "travels", "waits")
)
_OPENS = frozenset(("IN", "DT", "PRP", "PRP$", "TO", "RB", "WRB", "WP"))
_STOPS = frozenset(";:.!?")


def agreeing_verbs(parse: Parse, subject: int, *, sure: bool = False) -> Iterator[int]:
    """Yield the tokens whose form goes with a third-person singular subject (*she sits and reads*: both verbs).

    Parameters
    ----------
    parse : Parse
        The sentence.
    subject : int
        The token of the subject.
    sure : bool
        Leave out words that may be plural nouns (*the crew and reports to*).

    Yields
    ------
    int
        Tokens of verbs in the present tense, and *was*: of the clause, and of the clauses coordinated with it
        that have no subject of their own.
    """
    found = dict.fromkeys(_of_tree(parse, subject))
    found.update(dict.fromkeys(_of_order(parse, subject, sure)))
    yield from sorted(found)


def _of_tree(parse: Parse, subject: int) -> Iterator[int]:
    """The verb that the subject hangs on, and those coordinated with it."""
    if parse.deps[subject] not in SUBJECTS:
        return
    children: dict[int, list[int]] = {}
    for i, head in enumerate(parse.heads):
        if head != i:
            children.setdefault(head, []).append(i)
    todo, first = [parse.heads[subject]], True
    while todo:
        verb = todo.pop()
        own = children.get(verb, [])
        if not first and any(parse.deps[i] in SUBJECTS or parse.deps[i] == "expl" for i in own):
            continue
        for i in (verb, *own):
            if (i == verb or parse.deps[i] in _AUXILIARIES) and _agrees(parse, i) and (first or i > subject):
                yield i
        first = False
        todo += [i for i in own if parse.deps[i] == "conj" and i > subject]


def _of_order(parse: Parse, subject: int, sure: bool) -> Iterator[int]:
    """Verbs that the order of words gives away: right after the subject, and after "and".

    A tree that takes "reads" for a noun (*she sits and reads*), or that asterisks confuse, has none of them.
    """
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
            verbal = parse.tags[j] == "NNS" and _may_be_verb(parse, i, j, sure)
            if form is not None and (_agrees(parse, j) or verbal):
                yield j
        i += 1


def _may_be_verb(parse: Parse, link: int, i: int, sure: bool) -> bool:
    """Whether a plural noun after "and" is more likely a verb: after a verb, or before what an object begins with."""
    before, after = parse.tags[link - 1], parse.tags[i + 1] if i + 1 < len(parse.tags) else ""
    if before[:2] in ("VB", "JJ", "RB") and parse.heads[i] != i + 1:
        return before[:2] == "VB" or after in _OPENS
    if sure:
        return False
    if before == "," and after[:2] in (*_OPENS, "NN", "JJ", "VB"):
        return True
    return parse.words[i].lower() in _VERBAL or (before in ("NN", "PRP", "RP", "NNP") and after in _OPENS)


def _agrees(parse: Parse, i: int) -> bool:
    low = parse.words[i].lower()
    return parse.tags[i] == "VBZ" or low == "was"
