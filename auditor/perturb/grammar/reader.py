"""Reads grammar files, as grammars/README.md describes them.

Untrusted input: nothing is constructed but text, so that ``no`` is no truth value; aliases are refused (a few lines of
them can stand for gigabytes), and every mistake names file and line.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from auditor.core import reading
from auditor.core.errors import DataFileError, UnknownPlugin
from auditor.perturb.grammar.model import Agree, Alternative, Article, Grammar, Ref, Rule, Terminal, Text, View, check

if TYPE_CHECKING:
    from yaml.nodes import Node

    Fields = dict[str, tuple[Node, Node]]  # name -> its node and that of the value

HELP = "The format: audit list grammars format"
MOST_TERMINALS = 200_000
DEEPEST = 20  # nested fields
NAME = re.compile(r"[A-Za-z_][\w-]*\Z")
_BRACES = re.compile(r"\{([^{}]*)\}")
_TOP = {"format", "name", "task", "description", "start", "features", "views", "directed", "rules", "source"}
_RULE = {"attribute", "aligned", "groups", "terms", "labels", "alternatives", "source", "note"}
_PLAIN = Terminal(text="")


def available() -> list[str]:
    """The grammars that come with the tool."""
    return reading.shipped_names("grammars")


def load(name_or_path: str | Path) -> Grammar:
    """Read a grammar and refuse what cannot be drawn from.

    Parameters
    ----------
    name_or_path : str or Path
        A shipped grammar (``sentiment``), one view of it (``sentiment:names-by-race``), or a file
        (``mine.yaml``, ``mine.yaml:view``).

    Raises
    ------
    UnknownPlugin
        No shipped grammar or view has this name.
    DataFileError
        The file is malformed, or its grammar never ends, recurses, or refers to what is not there.
    """
    grammar = parse(name_or_path)
    for problem in check(grammar):
        if problem.fatal:
            raise DataFileError(f"{grammar.where(problem.line)}: {problem.message}. {HELP}")
    return grammar


def parse(name_or_path: str | Path) -> Grammar:
    """Read a grammar without checking it; see `auditor.perturb.grammar.check`."""
    path, view = _find(str(name_or_path))
    text = reading.read_text(path)
    if not text.strip():
        raise DataFileError(f"{path}: the file is empty. {HELP}")
    if path.suffix in (".cfg", ".pcfg"):
        raise DataFileError(f"{path}: grammars of NLTK are not read since 0.3; write the rules as YAML. {HELP}")
    grammar = dataclasses.replace(
        _Reader(text, path).grammar(), path=path, sha256=hashlib.sha256(text.encode()).hexdigest()
    )
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


def _compose(text: str, path: Path) -> Node:
    """The YAML node tree of ``text``; aliases and deep nesting are refused before they cost anything."""
    import yaml

    def line_of(loader: Any) -> int:
        return int(loader.peek_event().start_mark.line) + 1

    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Node | None, index: int) -> Node | None:
            self.depth += 1
            alias = self.check_event(yaml.events.AliasEvent)
            if alias or self.depth > DEEPEST:
                deep = f"more than {DEEPEST} fields inside each other."
                why = "aliases (*name) are not read. Write it out." if alias else deep
                raise DataFileError(f"{path}, line {line_of(self)}: {why}")
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    try:
        node = Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f", line {mark.line + 1}" if mark else ""
        raise DataFileError(f"{path}{at}: this is not valid YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise DataFileError(f"{path}: this is not valid YAML: {' '.join(str(error).split())}.") from None
    if node is None:
        raise DataFileError(f"{path}: the file is empty. {HELP}")
    return node


class _Reader:
    """Walks one node tree."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        self.root = _compose(text, path)
        self.features: dict[str, tuple[str, ...]] = {}
        self.n_terminals = 0

    def fail(self, node: Node, what: str) -> NoReturn:
        raise DataFileError(f"{self.path}, line {_line(node)}: {what}. {HELP}")

    def fields(self, node: Node, what: str) -> Fields:
        """The fields of a mapping, each once."""
        if _kind(node) != "mapping":
            self.fail(node, f"{what}: expected fields with values")
        out: Fields = {}
        for key, value in node.value:
            name = self.text(key, f"a field of {what}")
            if name in out:
                self.fail(key, f"{what}: {name} is here and in line {_line(out[name][0])}")
            out[name] = (key, value)
        return out

    def known(self, fields: Fields, names: Collection[str], what: str, end: str | None = None) -> None:
        """Refuse fields with other ``names``; features are known next to terms."""
        for field, (key, _) in fields.items():
            if field not in names:
                listed = f"; known: {', '.join(sorted(names))}" if end is None else end
                self.fail(key, f"{what}unknown field {field!r}{listed}")

    def items(self, node: Node, what: str) -> list[Node]:
        if _kind(node) != "sequence":
            self.fail(node, f"{what}: expected a list")
        return list(node.value)

    def text(self, node: Node, what: str) -> str:
        if _kind(node) != "scalar":
            self.fail(node, f"{what}: expected one text")
        return str(node.value)

    def plain(self, fields: Fields, name: str, default: str = "") -> str:
        """The text of a field that may be missing."""
        return self.text(fields[name][1], name) if name in fields else default

    def name(self, node: Node, what: str) -> str:
        name = self.text(node, what)
        if not NAME.match(name):
            self.fail(node, f"{what}: {name!r} is not a name (letters, digits, - and _)")
        return name

    def names(self, node: Node, what: str) -> tuple[str, ...]:
        return tuple(self.name(item, what) for item in self.items(node, what))

    def number(self, node: Node, what: str) -> float:
        try:
            value = float(self.text(node, what))
        except ValueError:
            self.fail(node, f"{what}: {node.value!r} is not a number")
        if not 0 <= value < 1e12:
            self.fail(node, f"{what}: {value:g} is not between 0 and 1e12")
        return value

    def grammar(self) -> Grammar:
        top = self.fields(self.root, "the file")
        self.known(top, _TOP, "")
        for name in ("format", "rules"):
            if name not in top:
                raise DataFileError(f"{self.path}, line 1: the field {name} is missing. {HELP}")
        if self.plain(top, "format") != "1":
            self.fail(top["format"][0], "format must be 1; a newer version of this tool wrote this file")
        if "features" in top:
            listed = self.fields(top["features"][1], "features")
            self.features = {feature: self.values(value, feature) for feature, (_, value) in listed.items()}
        self.features.setdefault("number", ("sg", "pl"))
        rules = {}
        for name, (key, value) in self.fields(top["rules"][1], "rules").items():
            if not NAME.match(name) or name == "a":
                self.fail(key, f"{name!r} cannot name a rule (letters, digits, - and _; not a)")
            rules[name] = self.rule(name, key, value)
        if not rules:
            self.fail(top["rules"][0], "there is no rule")
        return Grammar(
            name=self.plain(top, "name", self.path.stem),
            start=self.plain(top, "start", next(iter(rules))),
            start_line=_line(top["start"][0]) if "start" in top else 0,
            rules=rules,
            features=self.features,
            views=self.views(top["views"][1]) if "views" in top else {},
            task=self.plain(top, "task") or None,
            description=self.plain(top, "description"),
            directed=self.names(top["directed"][1], "directed") if "directed" in top else None,
        )

    def values(self, node: Node, feature: str) -> tuple[str, ...]:
        values = tuple(self.text(i, f"features.{feature}") for i in self.items(node, f"features.{feature}"))
        if len(set(values)) != len(values) or len(values) < 2:
            self.fail(node, f"the feature {feature} needs at least two different values")
        return values

    def views(self, node: Node) -> dict[str, View]:
        out = {}
        for name, (_, value) in self.fields(node, "views").items():
            fields = self.fields(value, f"the view {name}")
            lines = {field: _line(key) for field, (key, _) in fields.items()}
            start = fields.pop("start", None)
            out[name] = View(
                start=None if start is None else self.name(start[1], "start"),
                only={field: self.names(symbols, field) for field, (_, symbols) in fields.items()},
                lines=lines,
            )
        return out

    def rule(self, name: str, key: Node, node: Node) -> Rule:
        if _kind(node) == "sequence":
            return Rule(name=name, alternatives=tuple(self.alternative(i, name) for i in node.value), line=_line(key))
        fields = self.fields(node, f"the rule {name}")
        self.known(fields, _RULE | self.features.keys(), f"the rule {name}: ")
        base = dataclasses.replace(
            _PLAIN, source=self.plain(fields, "source"), features=self.feature_values(fields, {})
        )
        attribute = self.name(fields["attribute"][1], "attribute") if "attribute" in fields else None
        if attribute and "groups" not in fields:
            why = f"the sensitive rule {name} names no groups: its terminals belong under groups"
            self.fail(fields["attribute"][0], why)
        if "groups" in fields and not attribute:
            self.fail(fields["groups"][0], f"the rule {name} has groups but no attribute")
        alternatives: list[Alternative | Terminal] = []
        if "groups" in fields:
            for group, (_, cell) in self.fields(fields["groups"][1], "groups").items():
                own = dataclasses.replace(base, attribute=attribute, group=group)
                alternatives += self.bundle(cell, name, own)
        if "labels" in fields:
            for label, (_, cell) in self.fields(fields["labels"][1], "labels").items():
                alternatives += self.bundle(cell, name, dataclasses.replace(base, label=label))
        if "terms" in fields:
            alternatives += self.bundle(fields["terms"][1], name, base)
        if "alternatives" in fields:
            alternatives += [self.alternative(i, name) for i in self.items(fields["alternatives"][1], "alternatives")]
        aligned = self.plain(fields, "aligned", "false")
        if aligned not in ("true", "false"):
            self.fail(fields["aligned"][1], f"aligned: expected true or false, got {aligned!r}")
        return Rule(
            name=name,
            alternatives=tuple(alternatives),
            attribute=attribute,
            aligned=aligned == "true",
            source=base.source,
            line=_line(key),
        )

    def feature_values(self, fields: Fields, base: Mapping[str, str]) -> dict[str, str]:
        """The features of ``base`` and those that ``fields`` name."""
        out = dict(base)
        for feature, values in self.features.items():
            if feature in fields:
                out[feature] = self.plain(fields, feature)
                if out[feature] not in values:
                    self.fail(fields[feature][0], f"{feature} is one of {', '.join(values)}; got {out[feature]!r}")
        return out

    def bundle(self, node: Node, rule: str, base: Terminal) -> Iterator[Terminal]:
        """The terminals of a list, or of ``{terms: [...], number: pl, source: ...}``."""
        if _kind(node) == "mapping":
            fields = self.fields(node, f"the rule {rule}")
            self.known(fields, {"terms", "source", *self.features}, f"the rule {rule}: ", " next to terms")
            if "terms" not in fields:
                self.fail(node, f"the rule {rule}: the list of terms is missing")
            features = self.feature_values(fields, base.features)
            base = dataclasses.replace(base, features=features, source=self.plain(fields, "source", base.source))
            node = fields["terms"][1]
        for item in self.items(node, f"the rule {rule}"):
            yield self.terminal(item, rule, base)

    def terminal(self, node: Node, rule: str, base: Terminal = _PLAIN) -> Terminal:
        what = f"a terminal of {rule}"
        self.n_terminals += 1
        if self.n_terminals > MOST_TERMINALS:
            self.fail(node, f"more than {MOST_TERMINALS:,} terminals")
        own: dict[str, Any] = {}
        if _kind(node) == "mapping":
            fields = self.fields(node, what)
            facts = {f: self.number(value, f) for f, (_, value) in fields.items() if f.endswith("_percent")}
            self.known(fields, {"text", "weight", "source", "label", *self.features, *facts}, f"{what}: ", "")
            if "text" not in fields:
                self.fail(node, f"{what}: the field text is missing")
            own = {field: self.plain(fields, field) for field in ("source", "label") if field in fields}
            own |= {"features": self.feature_values(fields, base.features), "facts": facts}
            if "weight" in fields:
                own["weight"] = self.number(fields["weight"][1], "weight")
            node = fields["text"][1]
        text = self.text(node, what)
        if not text.strip():
            self.fail(node, f"{what} is empty; write one alternative with and one without it")
        if "{" in text or "}" in text:
            self.fail(node, f"{text!r} refers to a rule; that belongs under alternatives")
        return dataclasses.replace(base, text=text, line=_line(node), **own)

    def alternative(self, node: Node, rule: str) -> Alternative | Terminal:
        weight, at, what = 1.0, node, f"an alternative of {rule}"
        if _kind(node) == "mapping":
            fields = self.fields(node, what)
            if "is" not in fields:
                return self.terminal(node, rule)
            self.known(fields, ("is", "weight"), f"{what}: ")
            if "weight" in fields:
                weight = self.number(fields["weight"][1], "weight")
            node = fields["is"][1]
        text = self.text(node, what)
        if "{" not in text and "}" not in text:
            return dataclasses.replace(self.terminal(node, rule), weight=weight)
        return Alternative(parts=tuple(self.parts(text, node)), weight=weight, line=_line(at))

    def parts(self, text: str, node: Node) -> Iterator[Text | Ref | Agree | Article]:
        if re.search(r"[{}]", _BRACES.sub("", text)):
            self.fail(node, f"{text!r}: a brace is not closed")
        names = set()
        for number, piece in enumerate(_BRACES.split(text)):  # text and the inside of braces by turns
            if number % 2 == 0:
                if piece:
                    yield Text(text=piece)
                continue
            part = self.part(piece.strip(), node)
            if isinstance(part, Ref):
                if part.name in names:
                    numbered = f"{{{part.rule}#1}} and {{{part.rule}#2}}"
                    self.fail(node, f"{text!r} holds {{{part.name}}} twice; name them {numbered}")
                names.add(part.name)
            yield part

    def part(self, inner: str, node: Node) -> Ref | Agree | Article:
        if inner == "a":
            return Article()
        if "@" not in inner:
            rule, _, _ = inner.partition("#")
            if not NAME.match(rule):
                self.fail(node, f"{{{inner}}} is not a reference to a rule")
            return Ref(rule=rule, name=inner)
        listed, _, target = inner.rpartition("@")
        name, _, feature = target.partition(".")
        feature = feature or "number"
        if feature not in self.features:
            self.fail(node, f"{{{inner}}}: there is no feature {feature!r}; known: {', '.join(self.features)}")
        forms, values = tuple(form.strip() for form in listed.split("/")), self.features[feature]
        if len(forms) != len(values) or not all(forms):
            expected = f"{len(values)} values of {feature} ({', '.join(values)})"
            self.fail(node, f"{{{inner}}}: {len(forms)} forms for the {expected}")
        return Agree(forms=forms, name=name, feature=feature)


def _kind(node: Node) -> str:
    """``mapping``, ``sequence`` or ``scalar``."""
    return type(node).__name__.removesuffix("Node").lower()


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
