"""Records of a run folder as JSON text: encoded once, and put into the chain of a journal later.

What stands here is byte for byte what `auditor.store.journal.canonical` makes of the records of
`auditor.store.codec`, in less time: tests hold both equal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring as _text
from math import isfinite
from typing import Any, NamedTuple

from auditor.core.types import Case, Check, Prompt, Response, Verdict
from auditor.store import codec

_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class Line(NamedTuple):
    """One record as canonical JSON, cut where the chain fields ``prev`` and ``seq`` belong.

    Attributes
    ----------
    head, middle, tail : str
        The fields before ``prev``, between ``prev`` and ``seq``, and after ``seq``: at least one each.
    """

    head: str
    middle: str
    tail: str

    @property
    def plain(self) -> str:
        """The record without chain fields."""
        return f"{{{self.head},{self.middle},{self.tail}}}"

    def chained(self, seq: int, prev: str) -> str:
        """The record with its number and the hash of the line before."""
        return f'{{{self.head},"prev":"{prev}",{self.middle},"seq":{seq},{self.tail}}}'


def case_line(case: Case, checks: Mapping[str, Check]) -> Line:
    """One line of ``cases.jsonl``."""
    record = codec.case_record(case, checks)
    head = {name: record[name] for name in ("id", "label", "original")}
    tail = {name: record[name] for name in ("suite", "variants")}
    sampling = f'"sampling":{_text(case.sampling)}'
    return Line(_encode(head)[1:-1], sampling, _encode(tail)[1:-1])


def prompt_line(variant_id: str, prompt: Prompt) -> Line:
    """One line of ``prompts.jsonl``."""
    content = (
        f'"input":{_text(prompt.text)}'
        if prompt.text is not None
        else f'"messages":{_encode(prompt.payload()["messages"])}'
    )
    return Line(
        f'"format":{_text(prompt.format)},{content}',
        f'"prompt_sha256":{_text(prompt.sha256)}',
        f'"variant_id":{_text(variant_id)}',
    )


def response_line(response: Response) -> Line:
    """One line of ``responses.jsonl``."""
    usage, scores = response.usage, response.scores
    head = [f'"cached":{_flag(response.cached)},"cost_usd":{_number(response.cost_usd)}']
    if response.cut_off:
        head.append('"cut_off":true')
    if response.error is not None:
        head.append(f'"detail":{_text(response.detail)},"error":{_text(response.error)}')
    head.append(
        f'"format":{_text(response.format)},"latency_s":{_number(response.latency_s)},'
        f'"model":{_text(response.model)},"model_reported":{_maybe(response.model_reported)}'
    )
    if response.output is not None:
        head.append(f'"output":{_text(response.output)}')
        if response.detail:
            head.append(f'"output_sha256":{_text(response.detail)}')
    return Line(
        ",".join(head),
        f'"prompt_sha256":{_text(response.prompt_sha256)},"replicate":{response.replicate},'
        f'"scores":{"null" if scores is None else _numbers(scores)}',
        f'"usage":{"null" if usage is None else _encode(codec.usage_record(usage))},'
        f'"variant_id":{_text(response.variant_id)}',
    )


def verdict_line(verdict: Verdict) -> Line:
    """One line of ``verdicts.jsonl``."""
    hidden = "null" if verdict.hidden is None else _flag(verdict.hidden)
    attributes = ",".join(map(_text, verdict.attributes))
    return Line(
        f'"attributes":[{attributes}],"case_id":{_text(verdict.case_id)},'
        f'"distance":{_number(verdict.distance)},"format":{_text(verdict.format)},"hidden":{hidden},'
        f'"model":{_text(verdict.model)},"order":{verdict.order},'
        f'"original_output":{_maybe(verdict.original_output)},"outcome":{_text(verdict.outcome)}',
        f'"reason":{_text(verdict.reason)}',
        f'"variant_id":{_text(verdict.variant_id)},"variant_output":{_maybe(verdict.variant_output)}',
    )


def record_of(line: Line) -> dict[str, Any]:
    """The record that a line was made from."""
    found: dict[str, Any] = json.loads(line.plain)
    return found


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _maybe(text: str | None) -> str:
    return "null" if text is None else _text(text)


def _numbers(values: Mapping[str, float]) -> str:
    return "{" + ",".join([f"{_text(name)}:{_number(values[name])}" for name in sorted(values)]) + "}"


def _number(value: float | None) -> str:
    if value is None:
        return "null"
    if type(value) is float and isfinite(value):
        return repr(value)
    return _encode(value)  # whole numbers, those of other libraries, and the error for what is not finite
