"""Encoded lines are byte for byte what the journal makes of the records."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.types import Case, Check, Edit, Message, Prompt, Response, Usage, Variant, Verdict
from auditor.run.judging import hidden
from auditor.run.packed import pack, unpack
from auditor.store import codec, lines
from auditor.store.journal import canonical, chained

TEXT = st.text(st.characters(), max_size=12)  # surrogates too: they end up escaped as a whole
NUMBER = st.none() | st.integers(0, 9) | st.floats(allow_nan=False, allow_infinity=False)
PREV = "0" * 64


def same(line: lines.Line, record: codec.Record) -> bool:
    assert lines.record_of(line) == record
    return chained(line, 7, PREV) == chained(record, 7, PREV)


def edit(attribute: str, target: str, at: int) -> Edit:
    return Edit(
        attribute=attribute,
        kind="swap",
        source_group="a",
        target_group="b",
        source="x",
        target=target,
        where=(at, at + 1),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, dict[str, Check]]:
    parts = [edit("gender", draw(TEXT), 0), edit("race", draw(TEXT), 6)]
    variants = tuple(
        Variant(id=f"c.v{n}", input=draw(TEXT), groups={"gender": draw(TEXT)}, edits=tuple(edits))
        for n, edits in enumerate((parts[:1], parts[1:], parts))
    )
    checks = {
        v.id: Check(
            variant_id=v.id,
            check="dependency.v1",
            status=draw(st.sampled_from(("valid", "invalid", "unknown"))),
            reason=draw(TEXT),
        )
        for v in variants
    }
    original = Variant(id="c.o", input=draw(TEXT), groups={})
    label = draw(st.none() | TEXT)
    return Case(id="c", suite="mutation.v1", original=original, variants=variants, label=label), checks


@given(cases())
@settings(max_examples=40, deadline=None)
def test_a_case_is_encoded_and_packed_without_loss(made: tuple[Case, dict[str, Check]]) -> None:
    case, checks = made
    assert same(lines.case_line(case, checks), codec.case_record(case, checks))
    assert unpack(pack(case, checks)) == made


@given(TEXT, st.none() | TEXT, TEXT)
@settings(max_examples=40, deadline=None)
def test_a_prompt_is_encoded_as_its_record(variant: str, text: str | None, message: str) -> None:
    messages = None if text is not None else (Message(role="user", content=message),)
    prompt = Prompt(format="label", text=text, messages=messages, sha256="ab" * 32)
    assert same(lines.prompt_line(variant, prompt), codec.prompt_record(variant, prompt))


@given(st.none() | TEXT, TEXT, NUMBER, st.booleans(), st.none() | st.dictionaries(TEXT, st.floats(0, 1)))
@settings(max_examples=60, deadline=None)
def test_an_answer_is_encoded_as_its_record(
    output: str | None, detail: str, cost: float | None, cached: bool, scores: dict[str, float] | None
) -> None:
    response = Response(
        variant_id="c.v0",
        prompt_sha256="ab",
        format="label",
        replicate=2,
        output=output,
        error="timeout" if output is None else None,
        detail=detail,
        scores=scores,
        cached=cached,
        latency_s=0.25,
        usage=Usage(tokens_in=3, tokens_out=1) if cached else None,
        cost_usd=cost,
        model="m",
        model_reported=detail or None,
        cut_off=cached and output is not None,
    )
    assert same(lines.response_line(response), codec.response_record(response))


@given(NUMBER, st.none() | TEXT, st.none() | st.booleans(), st.lists(TEXT, max_size=2))
@settings(max_examples=60, deadline=None)
def test_a_verdict_is_encoded_as_its_record(
    distance: float | None, output: str | None, is_hidden: bool | None, attributes: list[str]
) -> None:
    verdict = Verdict(
        case_id="c",
        variant_id="c.v0",
        order=2,
        attributes=tuple(attributes),
        outcome="violation",
        hidden=is_hidden,
        original_output=output,
        variant_output="é",
        distance=distance,
        reason=output or "",
        model="m",
        format="f",
    )
    assert same(lines.verdict_line(verdict), codec.verdict_record(verdict))


def test_what_is_not_finite_is_refused() -> None:
    verdict = Verdict(case_id="c", variant_id="v", order=1, attributes=(), outcome="pass", distance=math.nan)
    with pytest.raises(ValueError, match="not JSON compliant"):
        lines.verdict_line(verdict)
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(codec.verdict_record(verdict))


@given(cases(), st.lists(st.sampled_from(("pass", "violation", "skipped")), min_size=3, max_size=3))
@settings(max_examples=60, deadline=None)
def test_hidden_is_what_the_lattice_says(made: tuple[Case, dict[str, Check]], outcomes: list[str]) -> None:
    from auditor.measure.hidden_lattice import mark_hidden

    case, checks = made
    verdicts = [
        Verdict(
            case_id="c",
            variant_id=v.id,
            order=v.order,
            attributes=v.attributes,
            outcome=outcome,  # type: ignore[arg-type]
        )
        for v, outcome in zip(case.variants, outcomes, strict=True)
    ]
    assert hidden(case, verdicts, checks) == [v.hidden for v in mark_hidden(case, verdicts, checks)]
