"""The rule language as values, and its parser; `auditor.core.rules` has the grammar."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
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

    def word(self, *words: str) -> bool:
        """Take a keyword or sign if it is next."""
        token = self.now
        if token.kind in ("name", "sign") and token.text.lower() in words:
            self.i += 1
            return True
        return False

    def fail(self, what: str) -> RuleError:
        return RuleError(self.text, self.now.at, what)

    def expect(self, sign: str) -> None:
        if not self.word(sign):
            raise self.fail(f"expected {sign!r}")

    def whole(self) -> Rule:
        rule = self.either()
        if self.now.kind != "end":
            raise self.fail('expected "and", "or" or the end')
        return rule

    def either(self) -> Rule:
        self.depth += 1
        if self.depth > DEPTH:
            raise self.fail(f"more than {DEPTH} levels")
        parts = [self.both()]
        while self.word("or"):
            parts.append(self.both())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Join(word="or", parts=tuple(parts))

    def both(self) -> Rule:
        parts = [self.negated()]
        while self.word("and"):
            parts.append(self.negated())
        return parts[0] if len(parts) == 1 else Join(word="and", parts=tuple(parts))

    def negated(self) -> Rule:
        negate = False
        while self.word("not"):
            negate = not negate
        if self.word("("):
            part = self.either()
            self.expect(")")
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
        op = self.op()
        at = self.now
        number, percent = self.number()
        if percent and name not in CALLS:
            self.i -= 1
            raise self.fail(f'"{name}" is a count; % goes with {", ".join(CALLS)} and with rates')
        if not percent and not number.is_integer():  # of more digits than a float holds, too
            raise RuleError(self.text, at.at, f'"{name}" is a count; write a whole number, or a share with %')
        return Count(name=name, op=op, number=number, share=percent)

    def op(self) -> str:
        if self.now.text not in OPS:
            raise self.fail(f"expected a comparison: {', '.join(OPS)}")
        self.i += 1
        return self.tokens[self.i - 1].text

    def number(self) -> tuple[float, bool]:
        if self.now.kind != "number":
            raise self.fail("expected a number")
        value = float(self.now.text)
        self.i += 1
        if self.word("%"):
            return value / 100, True
        return value, False

    def rate(self, name: str, start: int) -> Rule:
        self.expect("(")
        score = name if name in SCORES else ""
        inner = self.tokens[self.i + 1].text if self.i + 1 < len(self.tokens) else ""
        if not score and self.now.text.lower() in SCORES and inner == "(":
            score = self.now.text.lower()
            self.i += 2
        places = [self.place()]
        while self.word("x", "×", "*", "+", ","):
            places.append(self.place())
        if score and name not in SCORES:
            self.expect(")")
        self.expect(")")
        text = self.text[start : self.tokens[self.i - 1].at + 1]
        op = self.op()
        at = self.now.at
        number, percent = self.number()
        if number > 1:
            hint = "" if percent else f"; for per cent write {number:g}%"
            raise RuleError(self.text, at, f"a rate lies between 0 and 1{hint}")
        names = [place[0] for place in places]
        steps = tuple(sorted(p for p in places if p[1]))
        if steps and len(steps) < len(places):
            raise RuleError(self.text, start, "give a direction for every attribute, or for none")
        if len(set(names)) < len(names):
            raise RuleError(self.text, start, "an attribute stands here twice")
        attributes: tuple[str, ...] | None = tuple(sorted(names))
        if names in (["any"], ["all"]):
            attributes = None if names == ["any"] else ()
        if score and steps:
            raise RuleError(self.text, start, f"{score}(…) is of columns and has no direction")
        return Rate(
            end=RATES.get(name, "value"),
            attributes=attributes,
            directions=steps,
            op=op,
            number=number,
            text=text,
            score=score,
        )

    def place(self) -> tuple[str, str, str]:
        attribute = self.name("an attribute")
        if not self.word(":"):
            return attribute, "", ""
        source = self.name("a group")
        self.expect("->")
        return attribute, source, self.name("a group")

    def name(self, what: str) -> str:
        token = self.now
        if token.kind not in ("name", "quoted"):
            raise self.fail(f"expected {what}")
        self.i += 1
        return token.text.strip('"')
