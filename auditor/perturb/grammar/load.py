"""Reads grammar files: the project's YAML form (grammars/README.md) and NLTK's CFG text.

Untrusted input: nothing is constructed but text, aliases are refused (a few lines of them can stand for
gigabytes), and every mistake names file and line.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from auditor.core import data, yamlfile
from auditor.core.errors import DataFileError, UnknownPlugin
from auditor.perturb.grammar.check import check
from auditor.perturb.grammar.model import Agree, Alternative, Article, Grammar, Part, Ref, Rule, Terminal, Text, View
from auditor.perturb.grammar.nodes import HELP, compose

if TYPE_CHECKING:
    from yaml.nodes import Node

MOST_TERMINALS = 200_000
NAME = re.compile(r"[A-Za-z_][\w-]*\Z")
_BRACES = re.compile(r"\{([^{}]*)\}")
_TOP = {"format", "name", "task", "description", "start", "features", "views", "directed", "rules", "source"}
_RULE = {"attribute", "aligned", "groups", "terms", "labels", "alternatives", "source", "note"}


def available() -> list[str]:
    """The grammars that come with the tool."""
    return data.names("grammars")


def load(name_or_path: str | Path) -> Grammar:
    """Read a grammar and refuse what cannot be drawn from.

    Parameters
    ----------
    name_or_path : str or Path
        A shipped grammar (``sentiment``), one view of it (``sentiment:names-by-race``), or a file
        (``mine.yaml``, ``mine.yaml:view``, ``mine.cfg``).

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
    text = yamlfile.read_text(path)
    if not text.strip():
        raise DataFileError(f"{path}: the file is empty. {HELP}")
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    if path.suffix in (".cfg", ".pcfg"):
        from auditor.perturb.grammar.nltk import parse_cfg

        grammar = parse_cfg(text, path)
    else:
        grammar = _Reader(text, path).grammar()
    grammar = dataclasses.replace(grammar, path=path, sha256=sha256)
    return focus(grammar, view) if view else grammar


def focus(grammar: Grammar, view: str) -> Grammar:
    """The part of ``grammar`` that one of its views names."""
    if view not in grammar.views:
        raise UnknownPlugin("view", view, grammar.views, f"Views of {grammar.name}: see audit grammar check.")
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
    path = Path(name)
    if _given(path):
        return path, ""
    stem, colon, view = name.rpartition(":")
    if colon and _given(Path(stem)):
        return Path(stem), view
    stem, _, view = name.partition(":")
    if stem in available():
        return data.path("grammars", f"{stem}.yaml"), view
    if "/" in name or path.suffix in (".yaml", ".yml", ".cfg", ".pcfg"):
        raise DataFileError(f"{name}: there is no such grammar file. Shipped: {', '.join(available())}.")
    raise UnknownPlugin("grammar", name, available(), "Or give a file: --grammar FILE")


def _given(path: Path) -> bool:
    return path.exists() and not path.is_dir()


class _Reader:
    """Walks one node tree; values stay text, so that ``no`` is no truth value."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        self.root = compose(text, path)
        self.features: dict[str, tuple[str, ...]] = {}
        self.n_terminals = 0

    def fail(self, node: Node, what: str) -> NoReturn:
        raise DataFileError(f"{self.path}, line {_line(node)}: {what}. {HELP}")

    # -- plain values -------------------------------------------------------

    def fields(self, node: Node, what: str) -> dict[str, tuple[Node, Node]]:
        """Name to (key node, value node) of a mapping."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            self.fail(node, f"{what}: expected fields with values")
        out: dict[str, tuple[Node, Node]] = {}
        for key, value in node.value:
            name = self.text(key, f"a field of {what}")
            if name in out:
                self.fail(key, f"{what}: {name} stands here and in line {_line(out[name][0])}")
            out[name] = (key, value)
        return out

    def items(self, node: Node, what: str) -> list[Node]:
        import yaml

        if not isinstance(node, yaml.SequenceNode):
            self.fail(node, f"{what}: expected a list")
        return list(node.value)

    def text(self, node: Node, what: str) -> str:
        import yaml

        if not isinstance(node, yaml.ScalarNode):
            self.fail(node, f"{what}: expected one text")
        return str(node.value)

    def name(self, node: Node, what: str) -> str:
        name = self.text(node, what)
        if not NAME.match(name):
            self.fail(node, f"{what}: {name!r} is no name (letters, digits, - and _)")
        return name

    def number(self, node: Node, what: str) -> float:
        try:
            value = float(self.text(node, what))
        except ValueError:
            self.fail(node, f"{what}: {node.value!r} is no number")
        if not 0 <= value < 1e12:
            self.fail(node, f"{what}: {value:g} is not between 0 and 1e12")
        return value

    def truth(self, node: Node, what: str) -> bool:
        value = self.text(node, what)
        if value not in ("true", "false"):
            self.fail(node, f"{what}: expected true or false, got {value!r}")
        return value == "true"

    # -- the grammar --------------------------------------------------------

    def grammar(self) -> Grammar:
        top = self.fields(self.root, "the file")
        for name, (key, _) in top.items():
            if name not in _TOP:
                self.fail(key, f"unknown field {name!r}; known: {', '.join(sorted(_TOP))}")
        for name in ("format", "rules"):
            if name not in top:
                raise DataFileError(f"{self.path}, line 1: the field {name} is missing. {HELP}")
        if self.text(top["format"][1], "format") != "1":
            self.fail(top["format"][0], "format must be 1; a newer version of this tool wrote this file")

        def plain(name: str, default: str) -> str:
            return self.text(top[name][1], name) if name in top else default

        if "features" in top:
            self.features = {
                feature: self.values(value, feature)
                for feature, (_, value) in self.fields(top["features"][1], "features").items()
            }
        self.features.setdefault("number", ("sg", "pl"))
        rules = {}
        for name, (key, value) in self.fields(top["rules"][1], "rules").items():
            if not NAME.match(name) or name == "a":
                self.fail(key, f"{name!r} cannot name a rule (letters, digits, - and _; not a)")
            rules[name] = self.rule(name, key, value)
        if not rules:
            self.fail(top["rules"][0], "there is no rule")
        start = plain("start", next(iter(rules)))
        return Grammar(
            name=plain("name", self.path.stem),
            start=start,
            start_line=_line(top["start"][0]) if "start" in top else 0,
            rules=rules,
            features=self.features,
            views=self.views(top["views"][1]) if "views" in top else {},
            task=plain("task", "") or None,
            description=plain("description", ""),
            directed=tuple(self.name(i, "directed") for i in self.items(top["directed"][1], "directed"))
            if "directed" in top
            else None,
        )

    def values(self, node: Node, feature: str) -> tuple[str, ...]:
        found = tuple(self.text(i, f"features.{feature}") for i in self.items(node, f"features.{feature}"))
        if len(set(found)) != len(found) or len(found) < 2:
            self.fail(node, f"the feature {feature} needs at least two different values")
        return found

    def views(self, node: Node) -> dict[str, View]:
        out = {}
        for name, (key, value) in self.fields(node, "views").items():
            start, only, lines = None, {}, {}
            for field, (field_key, field_value) in self.fields(value, f"the view {name}").items():
                if field == "start":
                    start = self.name(field_value, "start")
                else:
                    only[field] = tuple(self.name(i, field) for i in self.items(field_value, field))
                lines[field] = _line(field_key)
            out[name] = View(name=name, start=start, only=only, line=_line(key), lines=lines)
        return out

    def rule(self, name: str, key: Node, node: Node) -> Rule:
        import yaml

        if isinstance(node, yaml.SequenceNode):
            return Rule(name=name, alternatives=tuple(self.alternative(i, name) for i in node.value), line=_line(key))
        fields = self.fields(node, f"the rule {name}")
        for field, (field_key, _) in fields.items():
            if field not in _RULE and field not in self.features:
                known = ", ".join(sorted(_RULE | set(self.features)))
                self.fail(field_key, f"the rule {name}: unknown field {field!r}; known: {known}")
        source = self.text(fields["source"][1], "source") if "source" in fields else ""
        base: dict[str, object] = {"source": source, "features": self.feature_values(fields)}
        alternatives: list[Alternative | Terminal] = []
        attribute = None
        if "attribute" in fields:
            attribute = self.name(fields["attribute"][1], "attribute")
            if "groups" not in fields:
                self.fail(
                    fields["attribute"][0],
                    f"the sensitive rule {name} names no groups: its terminals belong under groups",
                )
        elif "groups" in fields:
            self.fail(fields["groups"][0], f"the rule {name} has groups but no attribute")
        for kind in ("groups", "labels"):
            if kind not in fields:
                continue
            for value, (_, cell) in self.fields(fields[kind][1], kind).items():
                marks = {"attribute": attribute, "group": value} if kind == "groups" else {"label": value}
                alternatives += self.bundle(cell, name, base | marks)
        if "terms" in fields:
            alternatives += self.bundle(fields["terms"][1], name, base)
        if "alternatives" in fields:
            items = self.items(fields["alternatives"][1], "alternatives")
            alternatives += [self.alternative(i, name) for i in items]
        return Rule(
            name=name,
            alternatives=tuple(alternatives),
            attribute=attribute,
            aligned="aligned" in fields and self.truth(fields["aligned"][1], "aligned"),
            truth="labels" in fields,
            source=source,
            line=_line(key),
        )

    def feature_values(self, fields: Mapping[str, tuple[Node, Node]]) -> dict[str, str]:
        out = {}
        for feature, values in self.features.items():
            if feature in fields:
                key, node = fields[feature]
                value = self.text(node, feature)
                if value not in values:
                    self.fail(key, f"{feature} is one of {', '.join(values)}; got {value!r}")
                out[feature] = value
        return out

    def bundle(self, node: Node, rule: str, base: dict[str, Any]) -> Iterator[Terminal]:
        """The terminals of a list, or of ``{terms: [...], number: pl, source: ...}``."""
        import yaml

        if isinstance(node, yaml.MappingNode):
            fields = self.fields(node, f"the rule {rule}")
            for field, (key, _) in fields.items():
                if field not in {"terms", "source"} and field not in self.features:
                    self.fail(key, f"the rule {rule}: unknown field {field!r} beside terms")
            if "terms" not in fields:
                self.fail(node, f"the rule {rule}: the list of terms is missing")
            base = base | {"features": base["features"] | self.feature_values(fields)}
            if "source" in fields:
                base = base | {"source": self.text(fields["source"][1], "source")}
            node = fields["terms"][1]
        for item in self.items(node, f"the rule {rule}"):
            yield self.terminal(item, rule, base)

    def terminal(self, node: Node, rule: str, base: Mapping[str, Any]) -> Terminal:
        import yaml

        self.n_terminals += 1
        if self.n_terminals > MOST_TERMINALS:
            self.fail(node, f"more than {MOST_TERMINALS:,} terminals")
        values = dict(base)
        if isinstance(node, yaml.MappingNode):
            fields = self.fields(node, f"a terminal of {rule}")
            facts = {}
            for field, (key, value) in fields.items():
                if field.endswith("_percent"):
                    facts[field] = self.number(value, field)
                elif field not in {"text", "weight", "source", "label"} and field not in self.features:
                    self.fail(key, f"a terminal of {rule}: unknown field {field!r}")
            if "text" not in fields:
                self.fail(node, f"a terminal of {rule}: the field text is missing")
            for field in ("source", "label"):
                if field in fields:
                    values[field] = self.text(fields[field][1], field)
            if "weight" in fields:
                values["weight"] = self.number(fields["weight"][1], "weight")
            values |= {"features": base["features"] | self.feature_values(fields), "facts": facts}
            node = fields["text"][1]
        text = self.text(node, f"a terminal of {rule}")
        if not text.strip():
            self.fail(node, f"a terminal of {rule} is empty; write one alternative with and one without it")
        if "{" in text or "}" in text:
            self.fail(node, f"{text!r} refers to a rule; that belongs under alternatives")
        return Terminal(text=text, line=_line(node), **values)

    def alternative(self, node: Node, rule: str) -> Alternative | Terminal:
        import yaml

        weight, at = 1.0, node
        if isinstance(node, yaml.MappingNode):
            fields = self.fields(node, f"an alternative of {rule}")
            if "is" not in fields:
                return self.terminal(node, rule, {"features": {}})
            for field, (key, _) in fields.items():
                if field not in {"is", "weight"}:
                    self.fail(key, f"an alternative of {rule}: unknown field {field!r}; known: is, weight")
            if "weight" in fields:
                weight = self.number(fields["weight"][1], "weight")
            node = fields["is"][1]
        text = self.text(node, f"an alternative of {rule}")
        if "{" not in text and "}" not in text:
            found = self.terminal(node, rule, {"features": {}})
            return dataclasses.replace(found, weight=weight)
        return Alternative(parts=tuple(self.parts(text, node)), weight=weight, line=_line(at))

    def parts(self, text: str, node: Node) -> Iterator[Part]:
        if _BRACES.sub("", text).strip("{}") != _BRACES.sub("", text) or re.search(r"[{}]", _BRACES.sub("", text)):
            self.fail(node, f"{text!r}: a brace is not closed")
        at, names = 0, set()
        for found in _BRACES.finditer(text):
            if found.start() > at:
                yield Text(text=text[at : found.start()])
            part = self.part(found[1].strip(), node)
            if isinstance(part, Ref):
                if part.name in names:
                    self.fail(
                        node, f"{text!r} holds {{{part.name}}} twice; name them {{{part.rule}#1}} and {{{part.rule}#2}}"
                    )
                names.add(part.name)
            yield part
            at = found.end()
        if at < len(text):
            yield Text(text=text[at:])

    def part(self, inner: str, node: Node) -> Part:
        if inner == "a":
            return Article()
        if "@" not in inner:
            rule, _, _ = inner.partition("#")
            if not NAME.match(rule):
                self.fail(node, f"{{{inner}}} is no reference to a rule")
            return Ref(rule=rule, name=inner)
        listed, _, target = inner.rpartition("@")
        name, _, feature = target.partition(".")
        feature = feature or "number"
        if feature not in self.features:
            self.fail(node, f"{{{inner}}}: there is no feature {feature!r}; known: {', '.join(self.features)}")
        forms = tuple(form.strip() for form in listed.split("/"))
        values = self.features[feature]
        if len(forms) != len(values) or not all(forms):
            self.fail(
                node, f"{{{inner}}}: {len(forms)} forms for the {len(values)} values of {feature} ({', '.join(values)})"
            )
        return Agree(forms=forms, name=name, feature=feature)


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
