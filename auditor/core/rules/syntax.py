"""The rule language as values, and its parser; `auditor.core.rules` has the grammar."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from auditor.core.errors import ConfigError

COUNTS = ("shown", "hidden", "violations", "failed", "filtered", "refused", "unparsed", "partial", "never")
CALLS = ("failed", "filtered", "refused", "unparsed")  # these can be a share of the calls
RATES = {"rate": "value", "lower": "low", "upper": "high"}
SCORES = {  # rule name -> name of the estimate, of a search over rows
    "causal": "causal",
    "group": "group",
    "apparent_causal": "apparent_causal",
    "apparent_group": "apparent_group",
    "share": "discriminatory_share",
}
OPS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}
_TOKEN = re.compile(
    r'\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<quoted>"[^"]*")|(?P<name>[^\W\d]\w*(?:-\w+)*)'
    r"|(?P<sign>->|>=|<=|==|!=|[-><=()%×*+,:]))"
)
DEPTH = 50


class RuleError(ConfigError):
    """The rule ``text`` cannot be read; the message says ``what`` is wrong and shows the place, ``at``."""

    def __init__(self, text: str, at: int, what: str) -> None:
        flat = "".join(c if c.isprintable() else "?" for c in text)
        super().__init__(f"--fail-on: {what}.", below=f"    {flat}\n    {' ' * at}^")
        self.text, self.at, self.what = text, at, what


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """A count compared with a number, or with a share of the calls."""

    name: str
    op: str
    number: float
    share: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """A rate, or an end of its interval, compared with a number in [0, 1]."""

    end: str  # value, low or high
    attributes: tuple[str, ...] | None  # sorted; None is any set, () all attributes together
    directions: tuple[tuple[str, str, str], ...]
    op: str
    number: float
    text: str
    score: str = ""  # a key of SCORES; empty: the rate of texts, the causal score of rows


@dataclass(frozen=True, kw_only=True, slots=True)
class Not:
    """Holds where ``part`` does not."""

    part: Rule


@dataclass(frozen=True, kw_only=True, slots=True)
class Join:
    """``and`` or ``or`` of two or more parts."""

    word: str
    parts: tuple[Rule, ...]


Rule = Count | Rate | Not | Join


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(text: str) -> Rule:
    """Read a rule; `RuleError` has the place, and what could stand there.

    Examples
    --------
    >>> parse("hidden").name
    'hidden'
    >>> parse("rate(gender x race) > 2%").number
    0.02
    """
    return _Parser(text).whole()


def rates(rule: Rule) -> tuple[Rate, ...]:
    """Every rate that a rule names, from left to right.

    Examples
    --------
    >>> [rate.score for rate in rates(parse("shown or not group(sex) > 2% and rate(sex) > 0"))]
    ['group', '']
    """
    if isinstance(rule, Not):
        return rates(rule.part)
    if isinstance(rule, Join):
        return tuple(rate for part in rule.parts for rate in rates(part))
    return (rule,) if isinstance(rule, Rate) else ()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        self.i = self.depth = 0
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise RuleError(text, at, f"{text[at]!r} means nothing here")
            kind = str(match.lastgroup)
            self.tokens.append(_Token(kind, match.group(kind), match.start(kind)))
            at = match.end()
        self.end = _Token("end", "", len(text.rstrip()))

    @property
    def now(self) -> _Token:
        return self.tokens[self.i] if self.i < len(self.tokens) else self.end

    def fail(self, what: str) -> RuleError:
        return RuleError(self.text, self.now.at, what)

    def took(self, *words: str) -> bool:
        """Take a keyword or sign if it is next."""
        taken = self.now.kind in ("name", "sign") and self.now.text.lower() in words
        self.i += taken
        return taken

    def take(self, kinds: Collection[str], what: str) -> str:
        """Take the next token, which has to be one of these kinds, or one of these signs."""
        token = self.now
        if token.kind not in kinds and token.text not in kinds:
            raise self.fail(f"expected {what}")
        self.i += 1
        return token.text

    def whole(self) -> Rule:
        rule = self.either()
        if self.now.kind != "end":
            raise self.fail('expected "and", "or" or the end')
        return rule

    def either(self) -> Rule:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.fail(f"more than {DEPTH} levels")
        rule = self.joined("or", lambda: self.joined("and", self.negated))
        self.depth -= 1
        return rule

    def joined(self, word: str, below: Callable[[], Rule]) -> Rule:
        parts = [below()]
        while self.took(word):
            parts.append(below())
        return parts[0] if len(parts) == 1 else Join(word=word, parts=tuple(parts))

    def negated(self) -> Rule:
        negate = False
        while self.took("not"):
            negate = not negate
        if self.took("("):
            part = self.either()
            self.take((")",), "')'")
        else:
            part = self.atom()
        return Not(part=part) if negate else part

    def atom(self) -> Rule:
        token = self.now
        name = token.text.lower()
        if token.kind != "name" or name not in (*COUNTS, *RATES, *SCORES):
            words = ", ".join((*COUNTS, *(f"{r}(…)" for r in (*RATES, *SCORES))))
            raise self.fail(f"expected one of {words}")
        self.i += 1
        if name in RATES or name in SCORES:
            return self.rate(name, token.at)
        if self.now.text not in OPS:
            return Count(name=name, op=">", number=0.0, share=False)
        if name in ("partial", "never"):
            raise self.fail(f'"{name}" stands alone')
        op, at, number, percent = self.comparison()
        if percent and name not in CALLS:
            self.i -= 1
            raise self.fail(f'"{name}" is a count; % goes with {", ".join(CALLS)} and with rates')
        if not percent and not number.is_integer():  # of more digits than a float holds, too
            raise RuleError(self.text, at, f'"{name}" is a count; write a whole number, or a share with %')
        return Count(name=name, op=op, number=number, share=percent)

    def comparison(self) -> tuple[str, int, float, bool]:
        """The sign, where its number stands, the number, and whether it was a percentage."""
        op = self.take(OPS, f"a comparison: {', '.join(OPS)}")
        at = self.now.at
        number = float(self.take(("number",), "a number"))
        percent = self.took("%")
        return op, at, number / 100 if percent else number, percent

    def rate(self, name: str, start: int) -> Rule:
        self.take(("(",), "'('")
        score = name if name in SCORES else ""
        inner = self.tokens[self.i + 1].text if self.i + 1 < len(self.tokens) else ""
        if not score and self.now.text.lower() in SCORES and inner == "(":
            score = self.now.text.lower()
            self.i += 2
        places = [self.place()]
        while self.took("x", "×", "*", "+", ","):
            places.append(self.place())
        for _ in range(1 + (score != "" and name not in SCORES)):
            self.take((")",), "')'")
        text = self.text[start : self.tokens[self.i - 1].at + 1]
        op, at, number, percent = self.comparison()
        names, steps = [place[0] for place in places], tuple(sorted(p for p in places if p[1]))
        if number > 1:
            hint = "" if percent else f"; for per cent write {number:g}%"
            raise RuleError(self.text, at, f"a rate lies between 0 and 1{hint}")
        if steps and len(steps) < len(places):
            raise RuleError(self.text, start, "give a direction for every attribute, or for none")
        if len(set(names)) < len(names):
            raise RuleError(self.text, start, "an attribute stands here twice")
        if score and steps:
            raise RuleError(self.text, start, f"{score}(…) is of columns and has no direction")
        attributes = {"any": None, "all": ()}.get(names[0], (names[0],)) if len(names) == 1 else tuple(sorted(names))
        end = RATES.get(name, "value")
        return Rate(end=end, attributes=attributes, directions=steps, op=op, number=number, text=text, score=score)

    def place(self) -> tuple[str, str, str]:
        attribute = self.name("an attribute")
        if not self.took(":"):
            return attribute, "", ""
        source = self.name("a group")
        self.take(("->",), "'->'")
        return attribute, source, self.name("a group")

    def name(self, what: str) -> str:
        return self.take(("name", "quoted"), what).strip('"')
