"""Cases, prompts and answers without their texts: digests, lengths and edits stay."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Mapping

from auditor.core.errors import CallError
from auditor.core.types import Answer, Case, Check, Input, Message, Prompt, Response, Variant, digest

MARK = "(redacted"
_QUOTED = re.compile(r"(['\"‘“«]).*?(['\"’”»])", re.DOTALL)


def placeholder(value: Input) -> str:
    """Return the length of a text and the SHA-256 of its UTF-8, in place of it.

    >>> placeholder("A man.")[:24]
    '(redacted: 6 characters,'
    """
    if not isinstance(value, str):
        return f"{MARK}: a row, sha256 {digest(dict(value))})"
    return f"{MARK}: {len(value)} characters, sha256 {_sha256(value)})"


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def case(value: Case) -> Case:
    """A case with placeholders for its texts; ids, groups and edits stay."""

    def bare(variant: Variant) -> Variant:
        return dataclasses.replace(variant, input=placeholder(variant.input))

    return dataclasses.replace(value, original=bare(value.original), variants=tuple(bare(v) for v in value.variants))


def checks(values: Mapping[str, Check]) -> dict[str, Check]:
    """Checks whose reasons quote nothing."""
    return {
        key: dataclasses.replace(check, reason=_QUOTED.sub(f"{MARK})", check.reason)) for key, check in values.items()
    }


def prompt(value: Prompt) -> Prompt:
    """A prompt that holds its digest only."""
    mark = f"{MARK}: sha256 {value.sha256})"
    if value.messages is None:
        return dataclasses.replace(value, text=mark)
    return dataclasses.replace(value, messages=(Message(role="user", content=mark),))


def response(value: Response, read: Callable[[str], Answer], write: Callable[[Answer], str]) -> Response:
    """An answer of which the label is left, and in ``detail`` the SHA-256 of what came.

    ``write`` makes an output that ``read`` reads as this label and number. Where it does not, and where there is no
    label, the output is a mark, and the question is asked again when the run is resumed.
    """
    if value.output is None:
        return dataclasses.replace(value, detail=f"{MARK})" if value.detail else "")
    answer = read(value.output)
    output = f"{MARK}: {answer.status})"
    if answer.status == "ok":
        written = write(answer)
        again = read(written)
        if (again.value, again.number) == (answer.value, answer.number):
            output = written
    return dataclasses.replace(value, output=output, detail=_sha256(value.output))


def reason(error: Exception) -> str:
    """Return why a run ended, without the words of the model or its server.

    >>> from auditor.core.errors import BudgetExceeded, ServerFault
    >>> reason(ServerFault("cannot read: A man.")), reason(BudgetExceeded("the limit of 3 calls is reached"))
    ('server-fault: what was said is left out (--redact)', 'the limit of 3 calls is reached')
    """
    return f"{error.code}: what was said is left out (--redact)" if isinstance(error, CallError) else str(error)


def readable(value: Response) -> bool:
    """Whether the label of a journaled answer can still be read."""
    return value.output is None or not value.output.startswith(MARK)
