r"""Imports NLTK's CFG text (``S -> NP VP | 'rain' [0.2]``), probabilities included.

Terminals are joined with single spaces, and without one before closing punctuation. Two directives beyond
NLTK's ``%start``: ``%sensitive RULE ATTRIBUTE`` makes every terminal of a rule its own group, as ASTRAEA
does with its tokens; ``%truth RULE LABEL`` gives all terminals of a rule one label.
"""

from __future__ import annotations

import dataclasses
import re
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
    sensitive: dict[str, tuple[str, int]] = {}
    truth: dict[str, tuple[str, int]] = {}
    start, start_line = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("%"):
            words = line.split()
            if words[0] == "%start" and len(words) == 2:
                start, start_line = words[1], number
            elif words[0] in ("%sensitive", "%truth") and len(words) == 3:
                (sensitive if words[0] == "%sensitive" else truth)[words[1]] = (words[2], number)
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
    for table, what in ((sensitive, "%sensitive"), (truth, "%truth")):
        for rule, (_, number) in table.items():
            if rule not in alternatives:
                raise fail(number, f"{what} names {rule}, which is no rule")
    rules = {}
    for name, found in alternatives.items():
        attribute = sensitive[name][0] if name in sensitive else None
        label = truth[name][0] if name in truth else None
        rules[name] = Rule(
            name=name,
            attribute=attribute,
            truth=label is not None,
            line=lines[name],
            alternatives=tuple(
                dataclasses.replace(a, attribute=attribute, group=a.text if attribute else None, label=label)
                if isinstance(a, Terminal)
                else a
                for a in found
            ),
        )
    return Grammar(name=path.stem, start=start, start_line=start_line, rules=rules, features={"number": ("sg", "pl")})


def _right(text: str, number: int, fail: object) -> list[Alternative | Terminal]:
    assert callable(fail)
    out: list[Alternative | Terminal] = []
    symbols: list[str | Ref] = []
    weight, at, used = 1.0, 0, 0
    text = text.rstrip()

    def close() -> None:
        nonlocal weight, symbols, used
        if not symbols:
            raise fail(number, "an alternative is empty")
        if all(isinstance(s, str) for s in symbols):
            out.append(Terminal(text=_join([str(s) for s in symbols]), weight=weight, line=number))
        else:
            out.append(Alternative(parts=tuple(_parts(symbols)), weight=weight, line=number))
        weight, symbols, used = 1.0, [], 0

    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.end() == at:
            raise fail(number, f"cannot read {text[at : at + 20].strip()!r}")
        at = found.end()
        if found["bar"]:
            close()
        elif found["weight"]:
            try:
                weight = float(found["weight"])
            except ValueError:
                raise fail(number, f"[{found['weight']}] is no probability") from None
        elif found["quoted"]:
            symbols.append(found["quoted"][1:-1])
        else:
            used += 1
            symbols.append(Ref(rule=found["name"], name=f"{found['name']}#{used}"))
    close()
    return out


def _join(texts: list[str]) -> str:
    joined = ""
    for text in texts:
        joined += text if not joined or text.startswith(_CLOSING) else f" {text}"
    return joined


def _parts(symbols: list[str | Ref]) -> list[Part]:
    parts: list[Part] = []
    for i, symbol in enumerate(symbols):
        glued = isinstance(symbol, str) and symbol.startswith(_CLOSING)
        if i and not glued:
            parts.append(Text(text=" "))
        parts.append(Text(text=symbol) if isinstance(symbol, str) else symbol)
    return parts
