"""What is written of cases, prompts, answers and verdicts comes back as it was."""

from __future__ import annotations

import json
import math
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judged import swap

from auditor.core.record import read
from auditor.core.types import Case, Check, Response, Usage, Variant, Verdict
from auditor.store import journal
from auditor.store.journal import chained, decoded

T = TypeVar("T")


def whole(text: str) -> str:
    """Two surrogates that are one character are it once they were read."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


TEXT = st.text(st.characters(), max_size=12).map(whole)  # lone surrogates too
NUMBER = st.none() | st.integers(0, 9) | st.floats(allow_nan=False, allow_infinity=False)


def again(line: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """The record of a line in a chain."""
    return decoded(chained(line, 7, "0" * 64)[0], decoder)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, dict[str, Check]]:
    parts = [swap("gender", draw(TEXT), 0), swap("race", draw(TEXT), 6)]
    variants = tuple(
        Variant(id=f"c.v{n}", input=draw(TEXT), groups={"gender": draw(TEXT)}, edits=tuple(edits))
        for n, edits in enumerate((parts[:1], parts[1:], parts))
    )
    status = st.sampled_from(("valid", "invalid", "unknown"))
    checks = {
        v.id: Check(variant_id=v.id, check="dependency.v1", status=draw(status), reason=draw(TEXT)) for v in variants
    }
    original = Variant(id="c.o", input=draw(TEXT), groups={})
    label, source = draw(st.none() | TEXT), draw(st.none() | st.just("a"))
    return Case(id="c", suite="m.v1", original=original, variants=variants, label=label, source=source), checks


@given(cases())
@settings(max_examples=40, deadline=None)
def test_a_case_and_its_checks_come_back(made: tuple[Case, dict[str, Check]]) -> None:
    case, checks = made
    line = again(journal.case_line(case, checks), journal.CASE)
    assert (line.case(), line.checks()) == made
    assert journal.encode(line) == journal.case_line(case, checks)


@given(st.none() | TEXT, TEXT, NUMBER, st.booleans(), st.none() | st.dictionaries(TEXT, st.floats(0, 1)))
@settings(max_examples=60, deadline=None)
def test_an_answer_comes_back(
    output: str | None, detail: str, cost: float | None, cached: bool, scores: dict[str, float] | None
) -> None:
    response = Response(
        variant_id="c.v0", prompt_sha256="ab", format="label", replicate=2, output=output,
        error="timeout" if output is None else None, detail=detail, scores=scores, cached=cached, latency_s=0.25,
        usage=Usage(tokens_in=3, tokens_out=1) if cached else None, cost_usd=cost, model="m",
        model_reported=detail or None, cut_off=cached and output is not None,
    )  # fmt: skip
    assert again(journal.response_line(response), journal.RESPONSE) == response


@pytest.mark.parametrize("field", ["latency_s", "cost_usd", "scores"])
def test_what_is_not_finite_is_refused(field: str) -> None:
    verdict = Verdict(case_id="c", variant_id="v", order=1, attributes=(), outcome="pass", distance=math.nan)
    with pytest.raises(ValueError, match="not finite"):
        journal.verdict_line(verdict)
    value: Any = {"a": math.inf} if field == "scores" else math.inf
    answer = Response(variant_id="v", prompt_sha256="a", format="f", replicate=0, output="x", **{field: value})
    with pytest.raises(ValueError, match="not finite"):
        journal.response_line(answer)


def test_lines_of_format_1_are_read() -> None:
    old = {
        "id": "c", "suite": "s", "sampling": "iid", "label": None,
        "original": {"id": "c.o", "input": "A man.", "groups": {}},
        "variants": [
            {"id": "c.v0", "input": "A woman.", "order": 1, "groups": {}, "valid": True, "reason": "r",
             "check": "k.v1", "status": "unknown",
             "edits": [{"attribute": "gender", "kind": "swap", "source_group": "m", "target_group": "f",
                        "source": "man", "target": "woman", "where": [2, 5]}]},
        ],
    }  # fmt: skip
    line = decoded(json.dumps(old, sort_keys=True).encode(), journal.CASE)
    assert line.case().variants[0].edits[0].where == (2, 5)
    assert line.checks() == {"c.v0": Check(variant_id="c.v0", check="k.v1", status="unknown", reason="r")}
    answer = {"variant_id": "c.v0", "prompt_sha256": "a", "format": "f", "replicate": 0, "scores": None,
              "cached": False, "latency_s": 0.5, "usage": None, "cost_usd": None, "model": "m",
              "model_reported": None, "output": "x"}  # fmt: skip
    assert decoded(json.dumps(answer).encode(), journal.RESPONSE).output == "x"


def test_findings_of_version_0_2_are_given_their_claims() -> None:
    place = {"model": "m", "format": "bare"}
    claim = place | {
        "family": "net", "attribute": "race", "groups": ["a", "b"], "label": "", "scale": "share", "unit": "",
        "verdict": "not_tested",
    }  # fmt: skip
    other = claim | {"groups": ["c", "b"], "verdict": "shown_for_words"}
    finding = place | {"id": "F1", "kind": "claim", "code": "DIR110", "attributes": ["race"]}
    steps = {"directions": [["race", "b", "c"]], "verdict": "shown_for_words"}
    record = read({"claims": [claim, other], "findings": [finding | steps]})
    assert (record.findings[0].claim, record.findings[0].verdict) == (1, "not_determined")
    assert record.claims[1].why == "version 0.2 said: shown for these words"
