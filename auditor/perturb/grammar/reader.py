"""Reads grammar files, as grammars/README.md describes them; every mistake names file and line.

All values are text: ``no`` is a word and no truth value.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, NoReturn, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from auditor.core import reading
from auditor.core.errors import DataFileError, UnknownPlugin
from auditor.core.reading import Where, checked, load_fields, place
from auditor.perturb.grammar.model import Agree, Alternative, Article, Grammar, Part, Ref, Rule, Terminal, View, check

HELP = "The format: audit list grammars format"
NAME = re.compile(r"[A-Za-z_][\w-]*\Z")
_BRACES = re.compile(r"\{([^{}]*)\}")
_PERCENT = "_percent"  # ends the name of a fact about a terminal


def _form(value: object) -> object:
    """Return what one text says: a form with references, or a terminal."""
    return {"is" if "{" in value or "}" in value else "text": value} if isinstance(value, str) else value


def _listed(value: object) -> object:
    return {"terms": value} if isinstance(value, list) else value


def _spelled(value: object) -> object:
    return {"alternatives": value} if isinstance(value, list) else value


class _Featured(BaseModel):
    """A part that may also have fields by the names of features."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)
    __pydantic_extra__: dict[str, str]

    source: str = ""


class _Form(_Featured):
    """One alternative: a terminal (``text``), or a form with references (``is``)."""

    form: str = Field("", alias="is")
    text: str = ""
    weight: Annotated[float, Field(ge=0, lt=1e12)] = 1.0
    label: str | None = None


_Forms = tuple[Annotated[_Form, BeforeValidator(_form)], ...]


class _Bundle(_Featured):
    terms: _Forms


_Terms = Annotated[_Bundle, BeforeValidator(_listed)]


class _Rule(_Featured):
    attribute: str | None = None
    aligned: bool = False
    groups: dict[str, _Terms] = {}
    labels: dict[str, _Terms] = {}
    terms: _Terms | None = None
    alternatives: _Forms = ()
    note: str = ""

    @model_validator(mode="after")
    def _sensitive(self) -> Self:
        if (self.attribute is None) != (not self.groups):
            raise ValueError("a rule with an attribute has its terminals under groups, and no other rule has groups")
        return self


class _View(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, tuple[str, ...]]

    start: str | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    format: str
    name: str = ""
    task: str | None = None
    description: str = ""
    source: str = ""
    start: str = ""
    features: dict[str, Annotated[tuple[str, ...], Field(min_length=2)]] = {}
    views: dict[str, _View] = {}
    directed: tuple[str, ...] | None = None
    rules: Annotated[dict[str, Annotated[_Rule, BeforeValidator(_spelled)]], Field(min_length=1)]

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.format != "1":
            raise ValueError("format: must be 1; a newer version of this tool wrote this file")
        if wrong := next((name for name in self.rules if not NAME.match(name) or name == "a"), None):
            raise ValueError(f"rules: {wrong!r} cannot name a rule (letters, digits, - and _; not a)")
        return self


def available() -> list[str]:
    """The grammars that come with the tool."""
    return reading.shipped_names("grammars")


def load(name_or_path: str | Path) -> Grammar:
    """Read a grammar that can be drawn from: ``sentiment``, ``sentiment:names-by-race``, ``mine.yaml:view``.

    Raises `UnknownPlugin` for an unknown name or view, and `DataFileError` for a file that is malformed, or with a
    grammar that never ends, recurses, or refers to what is not there.
    """
    grammar = parse(name_or_path)
    for problem in check(grammar):
        if problem.fatal:
            raise DataFileError(f"{grammar.where(problem.line)}: {problem.message}. {HELP}")
    return grammar


def parse(name_or_path: str | Path) -> Grammar:
    """Read a grammar without checking it; see `auditor.perturb.grammar.check`."""
    path, view = _find(str(name_or_path))
    if path.suffix in (".cfg", ".pcfg"):
        raise DataFileError(f"{path}: grammars of NLTK are not read since 0.3; write the rules as YAML. {HELP}")
    grammar = _Reader(path).grammar(hashlib.sha256(reading.read_text(path).encode()).hexdigest())
    return focus(grammar, view) if view else grammar


def focus(grammar: Grammar, view: str) -> Grammar:
    """The part of ``grammar`` that one of its views names."""
    if view not in grammar.views:
        raise UnknownPlugin("view", view, grammar.views, f"Views of {grammar.name}: see audit list grammars check.")
    chosen = grammar.views[view]
    rules = dict(grammar.rules)
    for name, symbols in chosen.only.items():
        rule = rules[name]
        kept = tuple(
            a for a in rule.alternatives if isinstance(a, Alternative) and any(ref.rule in symbols for ref in a.refs)
        )
        rules[name] = dataclasses.replace(rule, alternatives=kept)
    return dataclasses.replace(grammar, rules=rules, start=chosen.start or grammar.start, view=view)


def _find(name: str) -> tuple[Path, str]:
    """The file and the view that a name or path stands for."""
    stem, colon, view = name.rpartition(":")
    for path, part in ((Path(name), ""), (Path(stem), view)):
        if (colon or not part) and path.exists() and not path.is_dir():
            return path, part
    stem, _, view = name.partition(":")
    if stem in available():
        return reading.shipped("grammars", f"{stem}.yaml"), view
    if "/" in name or Path(name).suffix in (".yaml", ".yml"):
        raise DataFileError(f"{name}: there is no such grammar file. Shipped: {', '.join(available())}.")
    raise UnknownPlugin("grammar", name, available(), "Or give a file")


class _Reader:
    """Makes the grammar of one file."""

    def __init__(self, path: Path) -> None:
        raw, self.lines = load_fields(path, empty=f". {HELP}", plain=True)
        self.path = path
        items = {where: line for where, line in self.lines.items() if isinstance(where[-1], int)}
        for field in ("terms", "alternatives"):  # a list alone is one of these
            self.lines |= {(*where[:-1], field, where[-1]): line for where, line in items.items()}
        self.file = checked(_File, raw, path, self.lines, HELP)
        self.features = {**self.file.features}
        self.features.setdefault("number", ("sg", "pl"))

    def fail(self, where: Where, what: str) -> NoReturn:
        raise DataFileError(f"{place(self.path, self.lines, where)}: {what}. {HELP}")

    def line(self, where: Where) -> int:
        return self.lines.get(where, 0)

    def grammar(self, sha256: str) -> Grammar:
        file = self.file
        return Grammar(
            name=file.name or self.path.stem,
            start=file.start or next(iter(file.rules)),
            start_line=self.line(("start",)),
            rules={name: self.rule(name, rule) for name, rule in file.rules.items()},
            features=self.features,
            views={name: self.view(name, one) for name, one in file.views.items()},
            directed=file.directed,
            path=self.path,
            sha256=sha256,
        )

    def view(self, name: str, view: _View) -> View:
        only = view.__pydantic_extra__
        fields = ("start", *only)
        return View(start=view.start, only=only, lines={f: self.line(("views", name, f)) for f in fields})

    def rule(self, name: str, rule: _Rule) -> Rule:
        where: Where = ("rules", name)
        base = Terminal(text="", features=self.features_of(rule, where, {}))
        alternatives: list[Alternative | Terminal] = []
        for group, own in rule.groups.items():
            sensitive = dataclasses.replace(base, attribute=rule.attribute, group=group)
            alternatives += self.terminals(own, (*where, "groups", group), sensitive)
        for label, own in rule.labels.items():
            alternatives += self.terminals(own, (*where, "labels", label), dataclasses.replace(base, label=label))
        if rule.terms is not None:
            alternatives += self.terminals(rule.terms, (*where, "terms"), base)
        for n, one in enumerate(rule.alternatives):
            at = (*where, "alternatives", n)
            if set(one.form) & set("{}"):
                parts = tuple(self.parts(one.form, at))
                alternatives.append(Alternative(parts=parts, weight=one.weight, line=self.line(at)))
            else:
                alternatives.append(self.terminal(one, at, Terminal(text="")))
        return Rule(
            name=name,
            alternatives=tuple(alternatives),
            attribute=rule.attribute,
            aligned=rule.aligned,
            line=self.line(where),
        )

    def features_of(self, part: _Featured, where: Where, base: Mapping[str, str]) -> dict[str, str]:
        """Return the features of ``base`` and those that ``part`` names."""
        out = dict(base)
        for name, value in part.__pydantic_extra__.items():
            if name in self.features and value in self.features[name]:
                out[name] = value
            elif name in self.features:
                self.fail((*where, name), f"{name} is one of {', '.join(self.features[name])}; got {value!r}")
            elif not (isinstance(part, _Form) and name.endswith(_PERCENT)):
                self.fail((*where, name), f"unknown field {name!r}")
        return out

    def terminals(self, own: _Bundle, where: Where, base: Terminal) -> Iterator[Terminal]:
        features = self.features_of(own, where, base.features)
        base = dataclasses.replace(base, features=features)
        for n, one in enumerate(own.terms):
            yield self.terminal(one, (*where, "terms", n), base)

    def terminal(self, one: _Form, where: Where, base: Terminal) -> Terminal:
        text = one.text or one.form
        if not text.strip():
            self.fail(where, "a terminal is empty; write one alternative with and one without it")
        if "{" in text or "}" in text:
            self.fail(where, f"{text!r} refers to a rule; that belongs under alternatives")
        try:
            facts = {name: float(value) for name, value in one.__pydantic_extra__.items() if name.endswith(_PERCENT)}
        except ValueError as error:
            self.fail(where, str(error))
        return dataclasses.replace(
            base,
            text=text,
            weight=one.weight,
            label=base.label if one.label is None else one.label,
            features=self.features_of(one, where, base.features),
            facts=facts,
            line=self.line(where),
        )

    def parts(self, text: str, where: Where) -> Iterator[Part]:
        if re.search(r"[{}]", _BRACES.sub("", text)):
            self.fail(where, f"{text!r}: a brace is not closed")
        names = set()
        for number, piece in enumerate(_BRACES.split(text)):  # text and the inside of braces by turns
            if number % 2 == 0:
                if piece:
                    yield piece
                continue
            part = self.part(piece.strip(), where)
            if isinstance(part, Ref):
                if part.name in names:
                    numbered = f"{{{part.rule}#1}} and {{{part.rule}#2}}"
                    self.fail(where, f"{text!r} holds {{{part.name}}} twice; name them {numbered}")
                names.add(part.name)
            yield part

    def part(self, inner: str, where: Where) -> Ref | Agree | Article:
        if inner == "a":
            return Article()
        if "@" not in inner:
            rule, _, _ = inner.partition("#")
            if not NAME.match(rule):
                self.fail(where, f"{{{inner}}} is not a reference to a rule")
            return Ref(rule=rule, name=inner)
        listed, _, target = inner.rpartition("@")
        name, _, feature = target.partition(".")
        feature = feature or "number"
        if feature not in self.features:
            self.fail(where, f"{{{inner}}}: there is no feature {feature!r}; known: {', '.join(self.features)}")
        forms, values = tuple(form.strip() for form in listed.split("/")), self.features[feature]
        if len(forms) != len(values) or not all(forms):
            expected = f"{len(values)} values of {feature} ({', '.join(values)})"
            self.fail(where, f"{{{inner}}}: {len(forms)} forms for the {expected}")
        return Agree(forms=forms, name=name, feature=feature)
