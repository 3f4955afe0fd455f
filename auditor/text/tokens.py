"""The tokens of a parsed text in one row, and the steps in its trees that reading persons takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from auditor.text.parse import Parse

SUBJECT = ("nsubj", "nsubj:pass", "nsubj:outer")


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
