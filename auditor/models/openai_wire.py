"""What OpenAI-compatible servers send: completions, errors, usage, and headers about limits."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime

from auditor.core.decoded import from_json
from auditor.core.errors import BadResponse, CallError, ContentFiltered
from auditor.core.protocols import Reply
from auditor.core.talk import written
from auditor.core.types import Usage

FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
DETAIL = 300  # characters of a server's message that are kept
THINK = "<think>"  # opens what is no answer; never closed where nothing but reasoning came
_REASONING_PARTS = frozenset({"reasoning", "thinking", "redacted_thinking"})
_UNSUPPORTED = re.compile(
    r"unsupported|not (?:be )?support|unrecogni[sz]ed|unknown|unexpected|extra[ _](?:inputs|fields|forbidden)"
    r"|not permitted|not allowed|only the default",
    re.IGNORECASE,
)


def read_completion(body: bytes, content_type: str | None, *, tools: bool = False) -> Reply | CallError:
    """The reply in the body of a chat completion, or why it is none.

    Where ``tools`` were offered, their calls are the answer, with the text beside (`auditor.core.talk`). Read here and
    not by the SDK, which hands out HTML as text and fields of the wrong type as they are.

    Examples
    --------
    >>> read_completion(b'{"choices": [{"message": {"content": "yes"}}]}', "application/json").text
    'yes'
    """
    if content_type is not None and "json" not in content_type.partition(";")[0].lower():
        return BadResponse(f"the answer's content type is {content_type.partition(';')[0].strip()!r}, not JSON")
    try:
        raw = from_json(body)
    except ValueError:  # also UnicodeDecodeError
        return BadResponse("the answer is not valid JSON, or nested too deeply")
    choices = raw.get("choices") if isinstance(raw, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        # Some servers report their errors with status 200.
        told = said(raw)[:DETAIL] if isinstance(raw, dict) else ""
        return BadResponse(f"the answer has no choices{': ' if told else ''}{told}")
    choice = choices[0]
    if choice.get("finish_reason") == "content_filter":
        return ContentFiltered("the provider's filter cut the answer (finish_reason content_filter)")
    message = choice.get("message")
    if not isinstance(message, dict):
        return BadResponse("the answer's first choice has no message")
    content = written(message) if tools and message.get("tool_calls") else _content(message)
    if content is None:
        return BadResponse("the answer's content is not a text")
    reported = raw.get("model")
    return Reply(
        content,
        usage=_usage(raw.get("usage")),
        model_reported=reported if isinstance(reported, str) else None,
        cut_off=choice.get("finish_reason") == "length",
    )


def _content(message: Mapping[str, object]) -> str | None:
    """The answer in a message; None where it has a form that is not known.

    Where there is no text, calls of tools are the answer, as JSON.
    A message that has nothing but its reasoning gives that, marked as what it is, so that no label is read in it.
    """
    content = message.get("content")
    if isinstance(content, list):
        content = _joined(content)
        if content is None:
            return None
    for field in ("refusal", "reasoning_content", "reasoning"):
        other = message.get(field)
        if not content and isinstance(other, str) and other.strip():
            content = other if field == "refusal" else f"{THINK}{other}"
    if not content and message.get("tool_calls"):
        return json.dumps({"tool_calls": message["tool_calls"]}, ensure_ascii=False)
    return content if isinstance(content, str) else "" if content is None else None


def _joined(parts: list[object]) -> str | None:
    """The text of a content that is a list of parts: texts and refusals; reasoning is no part of the answer."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, dict):
            return None
        elif part.get("type") not in _REASONING_PARTS:
            text = part.get("text", part.get("refusal"))
            if not isinstance(text, str):
                return None
            texts.append(text)
    return "".join(texts)


def unsupported(body: object, sent: Iterable[str]) -> set[str]:
    """Which of the parameters ``sent`` the body of an error says are not supported.

    Examples
    --------
    >>> told = {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}
    >>> unsupported(told, ["max_tokens", "temperature"])
    {'max_tokens'}
    >>> unsupported({"message": "max_tokens is too large: this model takes 4096 at most."}, ["max_tokens"])
    set()
    """
    try:
        text = body if isinstance(body, str) else json.dumps(body)
    except (TypeError, ValueError, RecursionError):
        return set()
    text = text[:4000]
    if not _UNSUPPORTED.search(text):
        return set()
    return {name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds to wait that a response asks for, or None.

    Reads ``retry-after-ms`` (milliseconds), and ``retry-after`` as seconds or as an HTTP date (RFC 9110,
    section 10.2.3); a date in the past is 0.

    Parameters
    ----------
    headers : mapping
        With names in lower case, or case-insensitive.
    now : float or None
        Seconds since the epoch, for tests.

    Examples
    --------
    >>> retry_after({"retry-after": "2"})
    2.0
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = (headers.get(name) or "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return float(value) * scale
    if not value:
        return None
    try:
        when = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, when - (time.time() if now is None else now))


def rate_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of a response that are about limits, names in lower case, sorted.

    Examples
    --------
    >>> rate_headers({"X-RateLimit-Remaining-Requests": "7", "Server": "x"})
    {'x-ratelimit-remaining-requests': '7'}
    """
    told = ((str(name).lower(), str(value)) for name, value in headers.items())
    return dict(sorted((n, v) for n, v in told if n.startswith(("x-ratelimit-", "retry-after"))))


def _usage(raw: object) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    tokens_in, tokens_out = raw.get("prompt_tokens"), raw.get("completion_tokens")
    if not (isinstance(tokens_in, int) and isinstance(tokens_out, int) and min(tokens_in, tokens_out) >= 0):
        return None
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out)


def error_code(body: object) -> str:
    """The code of an error in a body; empty if there is none.

    Examples
    --------
    >>> error_code({"error": {"code": "content_filter", "message": "…"}})
    'content_filter'
    """
    inner = body.get("error", body) if isinstance(body, dict) else None
    code = inner.get("code") if isinstance(inner, dict) else None
    return code if isinstance(code, str) else ""


def said(body: object) -> str:
    """The message in the body of an error, in the forms that servers use; empty if there is none."""
    if isinstance(body, str):
        return "an HTML page" if body.lstrip().startswith("<") else body
    if not isinstance(body, dict):
        return ""
    for field in ("message", "error", "detail", "msg"):
        value = body.get(field)
        if isinstance(value, list):  # FastAPI: one entry per field that it refuses
            value = value[0] if value else None
        if told := said(value):
            return told
    return ""
