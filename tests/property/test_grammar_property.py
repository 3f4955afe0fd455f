"""Grammars of all kinds: drawing and reading agree with brute force."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from random import Random

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from auditor.perturb import grammar
from auditor.perturb.edits import apply
from auditor.perturb.grammar.cases import GrammarSuite
from auditor.perturb.grammar.draw import Sampler

# Words that share beginnings and ends, so that different derivations meet in one sentence.
WORDS = st.sampled_from(["a", "ab", "b", "ba", "aba", "owl", "cat", "an", "an owl"])


@st.composite
def grammars(draw: st.DrawFn) -> str:
    """The text of a small grammar; rules refer to later ones only."""
    lines = ["format: 1", "rules:"]
    n = draw(st.integers(1, 3))
    inner = [f"r{i}" for i in range(1, n + 1)]
    for i, name in enumerate(["r0", *inner]):
        later = [*inner[i:], "who", "what"]
        count = draw(st.integers(1, 3))
        alternatives = []
        for _ in range(count):
            parts = []
            for k in range(draw(st.integers(1, 3))):
                kind = draw(st.sampled_from(["word", "ref", "article", "agree"]))
                if kind == "word":
                    parts.append(draw(WORDS))
                elif kind == "article":
                    parts.append("{a}")
                else:
                    ref = f"{draw(st.sampled_from(later))}#{k}"
                    parts.append("{" + ref + "}" + (" {is/are@" + ref + "}" if kind == "agree" else ""))
            alternatives.append(draw(st.sampled_from(["", " "])).join(parts))
        lines.append(f"  {name}: [{', '.join(repr(a) for a in alternatives)}]")
    a, b, c, d = (draw(WORDS) for _ in range(4))
    lines.append(f"  who: {{attribute: g, groups: {{x: [{a}1, {{text: {b}1, number: pl}}], y: [{c}2, {d}3]}}}}")
    terms = draw(st.lists(WORDS, min_size=1, max_size=3, unique=True))
    lines.append(f"  what: {{terms: [{', '.join(terms)}]}}")
    return "\n".join(lines) + "\n"


@st.composite
def spaces(draw: st.DrawFn) -> grammar.Space:
    """What a valid grammar can say, where that is not too much to list."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "g.yaml"
        file.write_text(draw(grammars()), encoding="utf-8")
        one = grammar.parse(file)
        assume(not any(problem.fatal for problem in grammar.check(one)))
    space = grammar.Space(one)
    assume(space.derivations <= 3_000)
    return space


def sentences(space: grammar.Space) -> list[str]:
    """The sentence of every derivation."""
    return [s.text(index) for s in space.structures for index in itertools.product(*map(range, s.sizes))]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(spaces())
def test_what_is_drawn_is_in_the_language(space: grammar.Space) -> None:
    texts = sentences(space)
    assert len(texts) == space.derivations
    language = set(texts)
    for derivation in Sampler(space).draw(50, np.random.default_rng(1)):
        assert space.text(derivation) in language


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(spaces(), st.integers(0, 5))
def test_cases_stay_in_the_language(space: grammar.Space, seed: int) -> None:
    assume(space.grammar.attributes)
    language = set(sentences(space))
    suite = GrammarSuite(grammar=space.grammar, generation="rand", cases=20, seed=seed, order=2)
    cases = suite.ask(20, Random(0))
    assert len({c.original.input for c in cases}) == len(cases)
    for case in cases:
        assert case.original.input in language
        for variant in case.variants:
            assert variant.input in language
            assert apply(str(case.original.input), variant.edits) == variant.input
