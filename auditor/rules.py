"""The rule language of ``--fail-on``: what in a run record makes a command end with exit code 1.

Grammar (keywords and names of counts in any case; docs/formats.md explains it with examples)::

    rule     = and { "or" and }
    and      = not { "and" not }
    not      = "not" not | "(" rule ")" | atom
    atom     = count [ op number ] | rate op number
    count    = "shown" | "hidden" | "violations" | "failed" | "refused" | "unparsed" | "partial" | "never"
    rate     = ("rate" | "lower" | "upper") "(" place { sep place } ")"
    place    = name [ ":" name "->" name ]          an attribute, or a direction in it; "all", "any"
    sep      = "x" | "×" | "*" | "+" | ","
    op       = ">" | ">=" | "<" | "<=" | "=" | "==" | "!="
    number   = digits [ "." digits ] [ "%" ]
    name     = letters, digits, "_" and "-", or a text in double quotes

A count without a comparison means "more than 0". Findings that are waived do not count.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from auditor import waivers
from auditor.errors import ConfigError

Record = Mapping[str, Any]
COUNTS = ("shown", "hidden", "violations", "failed", "refused", "unparsed", "partial", "never")
CALLS = ("failed", "refused", "unparsed")  # these can be a share of the calls
RATES = {"rate": "value", "lower": "low", "upper": "high"}
ENDS = {"value": "", "low": "lower end of ", "high": "upper end of "}
PRIMARY = ("violation_rate", "causal")  # what "rate" is in a record of texts, and of rows
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
    """The rule cannot be read; the message shows the place.

    Parameters
    ----------
    text : str
        The rule.
    at : int
        Offset of the place in it.
    what : str
        What is wrong there.
    """

    def __init__(self, text: str, at: int, what: str) -> None:
        flat = "".join(c if c.isprintable() else "?" for c in text)
        super().__init__(f"--fail-on: {what}.\n    {flat}\n    {' ' * at}^")
        self.text, self.at, self.what = text, at, what


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """One part of a rule that holds: in words, and the ids of the findings behind it."""

    text: str
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Whether the rule holds, and the parts of it that made it so."""

    holds: bool
    matches: tuple[Match, ...] = ()


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
    """Read a rule.

    Raises
    ------
    RuleError
        With the place, and what could stand there.

    Examples
    --------
    >>> parse("hidden").name
    'hidden'
    >>> parse("rate(gender x race) > 2%").number
    0.02
    """
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[_Token] = []
        self.i = self.depth = 0
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise RuleError(text, at, f"{text[at]!r} means nothing here")
            kind = str(found.lastgroup)
            self.tokens.append(_Token(kind, found.group(kind), found.start(kind)))
            at = found.end()
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
        if token.kind != "name" or name not in (*COUNTS, *RATES):
            words = ", ".join((*COUNTS, *(f"{r}(…)" for r in RATES)))
            raise self.fail(f"expected one of {words}")
        self.i += 1
        if name in RATES:
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
        if not percent and number != int(number):
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
        places = [self.place()]
        while self.word("x", "×", "*", "+", ","):
            places.append(self.place())
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
        return Rate(end=RATES[name], attributes=attributes, directions=steps, op=op, number=number, text=text)

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


def evaluate(rule: Rule | str, record: Record) -> Outcome:
    """Whether ``rule`` holds for a run record, and why.

    Parts about rates that the run did not measure are unknown; the rule is decided without them where it
    can be.

    Raises
    ------
    RuleError
        The text is no rule.
    ConfigError
        The rule hangs on something that was not measured; the message lists what was.

    Examples
    --------
    >>> evaluate("shown", {"findings": [], "estimates": [], "counts": {}}).holds
    False
    """
    rule = parse(rule) if isinstance(rule, str) else rule
    found = _Found(record)
    holds = found.value(rule)
    if holds is None:
        raise ConfigError(
            f"--fail-on cannot be decided: {', '.join(dict.fromkeys(found.missing))} was not measured in this "
            f"run. Measured: {'; '.join(found.measured()) or 'nothing'}."
        )
    return Outcome(holds=holds, matches=tuple(dict.fromkeys(found.matches)) if holds else ())


class _Found:
    """One evaluation: collects what held and what was missing."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.waived = waivers.of(record)
        self.matches: list[Match] = []
        self.missing: list[str] = []
        names = {e["name"] for e in record.get("estimates", ())}
        self.primary = next((name for name in PRIMARY if name in names), PRIMARY[0])

    def value(self, rule: Rule, *, wanted: bool = True) -> bool | None:
        """True, False or None for unknown (Kleene's logic); ``wanted`` is what a match would be."""
        if isinstance(rule, Not):
            part = self.value(rule.part, wanted=not wanted)
            return None if part is None else not part
        if isinstance(rule, Join):
            mark = len(self.matches)
            values = [self.value(part, wanted=wanted) for part in rule.parts]
            decides = rule.word == "or"
            known = decides if decides in values else None if None in values else not decides
            if known is not wanted:
                del self.matches[mark:]
            return known
        return self.count(rule, wanted) if isinstance(rule, Count) else self.rate(rule, wanted)

    def keep(self, holds: bool, wanted: bool, text: str, findings: tuple[str, ...] = ()) -> None:
        if holds == wanted:
            self.matches.append(Match(text=text, findings=findings))

    def count(self, rule: Count, wanted: bool) -> bool | None:
        ids: tuple[str, ...] = ()
        counts = self.record.get("counts") or {}
        if rule.name == "never":
            return False
        if rule.name == "partial":
            holds = self.record.get("status") == "partial"
            self.keep(holds, wanted, "the run is partial" if holds else "the run is complete")
            return holds
        if rule.name in ("shown", "hidden"):
            ids = tuple(self.shown(hidden=rule.name == "hidden"))
            n: float | None = len(ids)
            what = "hidden findings shown" if rule.name == "hidden" else "findings shown"
        elif rule.name == "violations":
            by_order = counts.get("violations")
            n = sum(by_order.values()) if isinstance(by_order, Mapping) else counts.get("discriminatory")
            what = "variants with another answer"
        else:
            n, what = counts.get(rule.name), f"{rule.name} answers"
        if n is None:
            self.missing.append(rule.name)
            return None
        if rule.share:
            calls = int(counts.get("calls") or 0) + int(counts.get("cached") or 0)
            share = n / calls if calls else 0.0
            holds = OPS[rule.op](share, rule.number)
            self.keep(holds, wanted, f"{what}: {n:g} of {calls} ({100 * share:.3g} %)")
            return holds
        holds = OPS[rule.op](n, rule.number)
        self.keep(holds, wanted, f"{what}: {n:g}", ids)
        return holds

    def shown(self, *, hidden: bool) -> list[str]:
        return [
            str(f["id"])
            for f in self.record.get("findings", ())
            if f["verdict"] == "shown"
            and f["id"] not in self.waived
            and (f["kind"] == "hidden" or not hidden)
        ]

    def rate(self, rule: Rate, wanted: bool) -> bool | None:
        rows = [e for e in self.record.get("estimates", ()) if self.about(e, rule)]
        if not rows:
            self.missing.append(rule.text)
            return None
        holds = False
        for row in rows:
            claims = self.claims(row)
            if claims and all(id in self.waived for id in claims):
                continue
            value = float(row["estimate"][rule.end])
            if OPS[rule.op](value, rule.number):
                holds = True
                subject = ", ".join(part for part in (row["model"], row.get("format")) if part)
                place = _place(row["attributes"], row.get("directions"))
                text = f"{ENDS[rule.end]}rate({place}) of {subject}: {100 * value:.3g} %"
                self.keep(True, wanted, text, tuple(claims))
        if not holds:
            self.keep(False, wanted, f"not {rule.text} {rule.op} {rule.number:g}")
        return holds

    def about(self, row: Mapping[str, Any], rule: Rate) -> bool:
        if row["name"] != self.primary or row.get("kind"):
            return False
        if rule.directions:
            return tuple(sorted(tuple(d) for d in row.get("directions") or ())) == rule.directions
        if row.get("directions"):
            return False
        attributes = tuple(sorted(row.get("attributes") or ()))
        return bool(attributes) if rule.attributes is None else attributes == rule.attributes

    def claims(self, row: Mapping[str, Any]) -> list[str]:
        """The findings that make a claim of this rate."""
        return [
            str(f["id"])
            for f in self.record.get("findings", ())
            if f["kind"] == "claim"
            and not str(f["code"]).startswith("REF")
            and f["model"] == row["model"]
            and (f.get("format") or "") in ("", row.get("format") or "")
            and list(f["attributes"]) == list(row["attributes"])
            and [list(d) for d in f.get("directions") or ()] == [list(d) for d in row.get("directions") or ()]
        ]

    def measured(self) -> list[str]:
        rows = (e for e in self.record.get("estimates", ()) if e["name"] == self.primary)
        rows = (e for e in rows if not e.get("directions") and not e.get("kind"))
        return sorted({f"rate({_place(e['attributes'], None)})" for e in rows})


def _place(attributes: Any, directions: Any) -> str:
    if directions:
        return " x ".join(f"{a}: {source} -> {target}" for a, source, target in directions)
    return " x ".join(attributes) or "all"
