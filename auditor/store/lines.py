"""The lines of a run folder: their fields are the run folder contract, their bytes are made and read by msgspec."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from math import isfinite
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from auditor.core.types import Case, Check, Edit, Input, Message, Prompt, Response, Sampling, Variant, Verdict

_encoder = msgspec.json.Encoder()


class VariantLine(msgspec.Struct, omit_defaults=True):
    """An original, or a variant with what its check said.

    ``valid`` is False only where a check found it so; ``status`` stands where a check could not decide.
    """

    id: str
    input: Input
    groups: Mapping[str, str] | UnsetType = UNSET
    order: int | UnsetType = UNSET
    edits: tuple[Edit, ...] | UnsetType = UNSET
    valid: bool | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    check: str | UnsetType | None = UNSET
    status: Literal["unknown"] | UnsetType = UNSET

    def variant(self) -> Variant:
        """The variant without its check."""
        return Variant(id=self.id, input=self.input, groups=self.groups or {}, edits=self.edits or ())


class CaseLine(msgspec.Struct):
    """One line of ``cases.jsonl``."""

    id: str
    suite: str
    sampling: Sampling
    original: VariantLine
    variants: tuple[VariantLine, ...]
    label: str | None = None
    source: str | UnsetType = UNSET

    def case(self) -> Case:
        """The case of this line."""
        return Case(
            id=self.id,
            suite=self.suite,
            sampling=self.sampling,
            label=self.label,
            original=self.original.variant(),
            variants=tuple([one.variant() for one in self.variants]),
            source=self.source or None,
        )

    def checks(self) -> dict[str, Check]:
        """The checks of this line; variants that no check saw are left out."""
        return {
            one.id: Check(
                variant_id=one.id,
                check=one.check,
                status=one.status or ("valid" if one.valid else "invalid"),
                reason=one.reason or "",
            )
            for one in self.variants
            if one.check
        }


class PromptLine(msgspec.Struct, omit_defaults=True):
    """One line of ``prompts.jsonl``: what is asked for one variant in one format."""

    variant_id: str
    format: str
    prompt_sha256: str
    input: str | UnsetType = UNSET
    messages: tuple[Message, ...] | UnsetType = UNSET

    def prompt(self) -> Prompt:
        """The prompt of this line."""
        return Prompt(
            format=self.format,
            sha256=self.prompt_sha256,
            text=None if self.input is UNSET else self.input,
            messages=None if self.messages is UNSET else self.messages,
        )


CASE = msgspec.json.Decoder(CaseLine)
PROMPT = msgspec.json.Decoder(PromptLine)
RESPONSE = msgspec.json.Decoder(Response)
VERDICT = msgspec.json.Decoder(Verdict)


def encode(value: object) -> bytes:
    """``value`` as JSON in UTF-8.

    Two surrogates that are one character become it, as they would when the line is read back; lines with one alone
    are escaped to ASCII.
    """
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        whole = json.loads(json.dumps(msgspec.to_builtins(value)))
    try:
        return _encoder.encode(whole)
    except UnicodeEncodeError:
        return json.dumps(whole, separators=(",", ":")).encode()


def case_line(case: Case, checks: Mapping[str, Check]) -> bytes:
    """One line of ``cases.jsonl``."""
    original = VariantLine(case.original.id, case.original.input, case.original.groups)
    variants = tuple([_variant(one, checks.get(one.id)) for one in case.variants])
    source = UNSET if case.source is None else case.source
    return encode(CaseLine(case.id, case.suite, case.sampling, original, variants, case.label, source))


def _variant(one: Variant, check: Check | None) -> VariantLine:
    line: Callable[..., VariantLine] = partial(VariantLine, one.id, one.input, one.groups, one.order, one.edits)
    if check is None:
        return line(True, "no validity check was run", None)
    if check.status == "unknown":
        return line(True, check.reason, check.check, "unknown")
    return line(check.status == "valid", check.reason, check.check)


def prompt_line(variant_id: str, prompt: Prompt) -> bytes:
    """One line of ``prompts.jsonl``."""
    if prompt.text is not None:
        return encode(PromptLine(variant_id, prompt.format, prompt.sha256, prompt.text))
    return encode(PromptLine(variant_id, prompt.format, prompt.sha256, messages=prompt.messages or ()))


def response_line(response: Response) -> bytes:
    """One line of ``responses.jsonl``: of ``output`` and ``error`` one is null."""
    numbers = (response.latency_s, response.cost_usd or 0, *(response.scores or {}).values())
    return _finite(response, numbers)


def verdict_line(verdict: Verdict) -> bytes:
    """One line of ``verdicts.jsonl``."""
    return _finite(verdict, (verdict.distance or 0,))


def _finite(value: Response | Verdict, numbers: tuple[float, ...]) -> bytes:
    if not all(map(isfinite, numbers)):
        raise ValueError(f"a number that is not finite cannot be written: {value!r}")
    return encode(value)
