r"""Imports NLTK's CFG text (``S -> NP VP | 'rain' [0.2]``), probabilities included.

Terminals are joined with single spaces, and without one before closing punctuation. Two directives beyond
NLTK's ``%start``: ``%sensitive RULE ATTRIBUTE`` makes every terminal of a rule its own group, as ASTRAEA
does with its tokens; ``%truth RULE LABEL`` gives all terminals of a rule one label.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path

from auditor.core.errors import DataFileError
from auditor.perturb.grammar.model import Alternative, Grammar, Part, Ref, Rule, Terminal, Text

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"[^"]*"|'[^']*')|(?P<name>[\w/^<>-]+?(?=\s|\||\[|$|"|'))|\[(?P<weight>[\d.eE+-]+)\]|(?P<bar>\|))"""
)
_CLOSING = tuple(".,;:!?)")


def parse_cfg(text: str, path: Path) -> Grammar:
    r"""Build the grammar that ``text`` describes; ``path`` is for messages.

    >>> g = parse_cfg("S -> X 'sings' '.'\nX -> 'she' | 'he'\n%sensitive X gender", Path("x.cfg"))
    >>> g.rules["X"].groups
    ('she', 'he')
    """

    def fail(line: int, what: str) -> DataFileError:
        return DataFileError(f"{path}, line {line}: {what}. An NLTK rule reads: LEFT -> Symbol 'text' | …")

    alternatives: dict[str, list[Alternative | Terminal]] = {}
    lines: dict[str, int] = {}
    marks: dict[str, dict[str, str]] = {"%sensitive": {}, "%truth": {}}  # directive -> rule -> attribute or label
    marked: list[tuple[str, str, int]] = []
    start, start_line = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("%"):
            words = line.split()
            if words[0] == "%start" and len(words) == 2:
                start, start_line = words[1], number
            elif words[0] in marks and len(words) == 3:
                marks[words[0]][words[1]] = words[2]
                marked.append((words[0], words[1], number))
            else:
                raise fail(number, f"{line!r} is no directive")
            continue
        left, arrow, right = line.partition("->")
        left = left.strip()
        if not arrow or not re.fullmatch(r"[\w/^<>-]+", left):
            raise fail(number, "there is no rule in this line")
        start = start or left
        lines.setdefault(left, number)
        alternatives.setdefault(left, []).extend(_right(right, number, fail))
    if not alternatives:
        raise fail(1, "there is no rule in the file")
    for what, rule, number in sorted(marked, key=itemgetter(0)):
        if rule not in alternatives:
            raise fail(number, f"{what} names {rule}, which is no rule")
    rules = {}
    for name, own in alternatives.items():
        attribute, label = marks["%sensitive"].get(name), marks["%truth"].get(name)
        made = (
            dataclasses.replace(a, attribute=attribute, group=a.text if attribute else None, label=label)
            if isinstance(a, Terminal)
            else a
            for a in own
        )
        rules[name] = Rule(name=name, attribute=attribute, line=lines[name], alternatives=tuple(made))
    return Grammar(name=path.stem, start=start, start_line=start_line, rules=rules, features={"number": ("sg", "pl")})


def _right(text: str, number: int, fail: Callable[[int, str], DataFileError]) -> list[Alternative | Terminal]:
    """The alternatives on the right-hand side of a rule."""
    out: list[Alternative | Terminal] = []
    symbols: list[str | Ref] = []
    weight, at = 1.0, 0
    text = text.rstrip()

    def close() -> None:
        if not symbols:
            raise fail(number, "an alternative is empty")
        parts = tuple(_parts(symbols))
        if all(isinstance(part, Text) for part in parts):
            whole = "".join(part.text for part in parts if isinstance(part, Text))
            out.append(Terminal(text=whole, weight=weight, line=number))
        else:
            out.append(Alternative(parts=parts, weight=weight, line=number))

    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or token.end() == at:
            raise fail(number, f"cannot read {text[at : at + 20].strip()!r}")
        at = token.end()
        if token["bar"]:
            close()
            weight, symbols = 1.0, []
        elif token["weight"]:
            try:
                weight = float(token["weight"])
            except ValueError:
                raise fail(number, f"[{token['weight']}] is no probability") from None
        elif token["quoted"]:
            symbols.append(token["quoted"][1:-1])
        else:
            used = sum(isinstance(symbol, Ref) for symbol in symbols)
            symbols.append(Ref(rule=token["name"], name=f"{token['name']}#{used + 1}"))
    close()
    return out


def _parts(symbols: list[str | Ref]) -> Iterator[Part]:
    """Symbols with single spaces between them, and none before closing punctuation."""
    for i, symbol in enumerate(symbols):
        text = symbol if isinstance(symbol, str) else ""
        if i and not text.startswith(_CLOSING):
            yield Text(text=" ")
        yield Text(text=text) if isinstance(symbol, str) else symbol
