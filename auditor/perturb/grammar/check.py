"""What is wrong with a grammar, each with its line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from auditor.perturb.grammar.model import Agree, Alternative, Grammar, Rule, Terminal


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Problem:
    """One problem; ``fatal`` ones make drawing impossible, the others are worth a look."""

    line: int
    message: str
    fatal: bool


def check(grammar: Grammar) -> list[Problem]:
    """Look for all problems of ``grammar``, the fatal ones first, then by line.

    Fatal: undefined symbols, rules that never end, recursion (a language without end cannot be counted),
    a rule without alternatives or with weights that sum to zero, a sensitive rule with fewer than two
    groups, groups that are not aligned although the rule says so. Others: rules that no start symbol leads
    to, terminals that stand twice.

    Examples
    --------
    >>> from auditor.perturb.grammar.model import Ref
    >>> loop = Rule(name="s", alternatives=(Alternative(parts=(Ref(rule="s", name="s"),), line=2),), line=1)
    >>> [p.message for p in check(Grammar(name="g", start="s", rules={"s": loop}))]
    ['the rule s never ends: s -> s']
    """
    found = list(_symbols(grammar))
    if not found:
        found += _endless(grammar)
    for rule in grammar.rules.values():
        found += _weights(rule)
        found += _sensitive(rule)
        found += _duplicates(rule)
    found += _unreachable(grammar)
    return sorted(found, key=lambda p: (not p.fatal, p.line, p.message))


def _symbols(grammar: Grammar) -> Iterator[Problem]:
    known = grammar.rules

    def near(name: str) -> str:
        import difflib

        close = difflib.get_close_matches(name, known, n=1)
        return f"; did you mean {close[0]}?" if close else ""

    def undefined(name: str, line: int) -> Problem:
        return Problem(line=line, message=f"the symbol {name} is not defined{near(name)}", fatal=True)

    if grammar.start not in known:
        yield undefined(grammar.start, grammar.start_line)
    for rule in known.values():
        for alternative in rule.alternatives:
            if not isinstance(alternative, Alternative):
                continue
            names = {ref.name for ref in alternative.refs}
            for ref in alternative.refs:
                if ref.rule not in known:
                    yield undefined(ref.rule, alternative.line)
            for part in alternative.parts:
                if isinstance(part, Agree) and part.name not in names:
                    yield Problem(
                        line=alternative.line,
                        message=f"a form agrees with {part.name}, which does not stand in the same alternative",
                        fatal=True,
                    )
    for name in grammar.directed or ():
        if name not in known:
            yield undefined(name, 0)
    # Inside a view, rules have fewer alternatives than other views refer to.
    for view in () if grammar.view else grammar.views.values():
        if view.start is not None and view.start not in known:
            yield undefined(view.start, view.lines["start"])
        for name, symbols in view.only.items():
            if name not in known:
                yield undefined(name, view.lines[name])
                continue
            offered = {r.rule for a in known[name].alternatives if isinstance(a, Alternative) for r in a.refs}
            for symbol in symbols:
                if symbol not in offered:
                    yield Problem(
                        line=view.lines[name],
                        message=f"no alternative of {name} refers to {symbol}{near(symbol)}",
                        fatal=True,
                    )


def _endless(grammar: Grammar) -> Iterator[Problem]:
    """Rules that lead back to themselves: never-ending ones, and languages without end."""
    ends = _ending(grammar)
    done: set[str] = set()
    reported: set[frozenset[str]] = set()
    for root in grammar.rules:
        trail: list[str] = []
        on_trail: set[str] = set()
        stack: list[tuple[str, Iterator[str]]] = []

        def enter(
            name: str,
            trail: list[str] = trail,
            on_trail: set[str] = on_trail,
            stack: list[tuple[str, Iterator[str]]] = stack,
        ) -> None:
            trail.append(name)
            on_trail.add(name)
            stack.append((name, iter(_next(grammar.rules[name]))))

        if root not in done:
            enter(root)
        while stack:
            name, following = stack[-1]
            step = next(following, None)
            if step is None:
                stack.pop()
                trail.pop()
                on_trail.discard(name)
                done.add(name)
            elif step in on_trail:
                loop = trail[trail.index(step) :]
                if frozenset(loop) not in reported:
                    reported.add(frozenset(loop))
                    how = " -> ".join([*loop, step])
                    if any(n not in ends for n in loop):
                        message = f"the rule {step} never ends: {how}"
                    else:
                        message = f"the rule {step} recurses without end, so its language has no size: {how}"
                    yield Problem(line=grammar.rules[step].line, message=message, fatal=True)
            elif step not in done:
                enter(step)


def _ending(grammar: Grammar) -> set[str]:
    """The rules from which a sentence can be finished."""
    ends: set[str] = set()
    while True:
        more = {
            name
            for name, rule in grammar.rules.items()
            if name not in ends
            and any(isinstance(a, Terminal) or all(r.rule in ends for r in a.refs) for a in rule.alternatives)
        }
        if not more:
            return ends
        ends |= more


def _next(rule: Rule) -> list[str]:
    return list(dict.fromkeys(ref.rule for a in rule.alternatives if isinstance(a, Alternative) for ref in a.refs))


def _weights(rule: Rule) -> Iterator[Problem]:
    if not rule.alternatives:
        yield Problem(line=rule.line, message=f"the rule {rule.name} has no alternatives", fatal=True)
        return
    total = math.fsum(a.weight for a in rule.alternatives)
    if not total > 0:
        yield Problem(line=rule.line, message=f"the weights of the rule {rule.name} sum to zero", fatal=True)


def _sensitive(rule: Rule) -> Iterator[Problem]:
    if rule.attribute is None:
        return
    terminals = rule.terminals
    if len(terminals) < 2:
        yield Problem(
            line=rule.line,
            message=f"the sensitive rule {rule.name} has {len(terminals)} terminal, so nothing can replace it",
            fatal=True,
        )
        return
    for terminal in terminals:
        if terminal.group is None:
            yield Problem(
                line=terminal.line,
                message=f"the terminal {terminal.text!r} of the sensitive rule {rule.name} has no group",
                fatal=True,
            )
    if len(rule.groups) < 2:
        yield Problem(
            line=rule.line,
            message=f"the sensitive rule {rule.name} has one group only ({', '.join(rule.groups)})",
            fatal=True,
        )
    sizes = Counter(t.group for t in terminals)
    if rule.aligned and len(set(sizes.values())) > 1:
        told = ", ".join(f"{g}: {n}" for g, n in sizes.items())
        yield Problem(
            line=rule.line, message=f"the groups of the aligned rule {rule.name} differ in size ({told})", fatal=True
        )


def _duplicates(rule: Rule) -> Iterator[Problem]:
    seen: dict[tuple[str, str], Terminal] = {}
    for terminal in rule.terminals:
        # "deer" singular and "deer" plural are two terminals.
        key = (terminal.text, ",".join(f"{k}={v}" for k, v in sorted(terminal.features.items())))
        if key in seen:
            first = seen[key]
            same = first.group == terminal.group and first.label == terminal.label
            yield Problem(
                line=terminal.line,
                message=f"the terminal {terminal.text!r} stands twice in the rule {rule.name} (also line {first.line})"
                + ("" if same else ", in different groups"),
                fatal=not same,
            )
        seen.setdefault(key, terminal)


def _unreachable(grammar: Grammar) -> Iterator[Problem]:
    import dataclasses

    reached: set[str] = set(grammar.reachable())
    for view in grammar.views.values():
        if view.start is not None:
            reached |= set(dataclasses.replace(grammar, start=view.start).reachable())
    if grammar.view:  # a view leaves rules out on purpose
        return
    for name, rule in grammar.rules.items():
        if name not in reached:
            yield Problem(line=rule.line, message=f"no start symbol leads to the rule {name}", fatal=False)
