"""How servers are asked, and what their failures mean: one HTTP client, one map of statuses and of SDKs' errors.

Bodies have an end, and a redirect stays where the user pointed.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ContentFiltered,
    PromptTooLong,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import Model
from auditor.core.shown import hidden, keep_secrets_of_url

LARGEST = 16 * 1024 * 1024  # bytes of an answer that are read, after it was unpacked
LARGEST_FILE = 1024 * 1024 * 1024  # of a file with the answers of a batch
REDIRECTS = 5
DETAIL = 300  # characters of a server's message that are kept
FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
# Without credit waiting does not help, whatever the status is.
NO_ACCESS_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "account_deactivated"})
# As OpenAI, Azure, vLLM, llama.cpp, Anthropic, Gemini and Bedrock say it; few send a code.
TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|available context size|context window"
    r"|(?:prompt|input) is too long|input token count|exceeds the maximum number of tokens",
    re.IGNORECASE,
)
STATUSES: Mapping[int, type[CallError]] = {
    **dict.fromkeys((401, 402, 403, 405, 407), AuthFailed),
    404: AuthFailed,  # no such model or path: the same for every prompt, so the run stops
    408: CallTimeout,
    409: ServerFault,  # a lock in the server that passes
    425: ServerFault,
    429: RateLimited,
    **dict.fromkeys((504, 524), CallTimeout),  # of a gateway in front of a slow server
}
# Errors that carry no HTTP status, by class name, looked up along the bases: SDKs of providers, LangChain, Python.
_ERRORS: Mapping[type[CallError], str] = {
    AuthFailed: """OAuthError SubjectTokenProviderError ModelAuthenticationError ModelPermissionDeniedError
        ModelNotFoundError""",
    BadRequest: "OpenAIError ModelInvalidRequestError NotImplementedError UnicodeEncodeError",
    PromptTooLong: "ContextOverflowError",
    RateLimited: "RateLimitError ModelRateLimitError",
    CallTimeout: "APITimeoutError TimeoutException TimeoutError ModelTimeoutError",
    ServerFault: "APIError",
    BadResponse: "APIResponseValidationError LengthFinishReasonError JSONDecodeError OutputParserException",
    ContentFiltered: "ContentFilterFinishReasonError",
}
ERRORS: Mapping[str, type[CallError]] = {name: kind for kind, names in _ERRORS.items() for name in names.split()}


class Elsewhere(AuthFailed):
    """The server points to another place: for every prompt, so the run stops."""


class TooLong(BadResponse):
    """The answer has no end, or was packed so that it hardly has one: it is not asked for again."""

    transient = False


def client(like: type[object] | None = None, **options: object) -> Any:
    """Return a client that reads at most `LARGEST` bytes and follows redirects within one origin only.

    ``like`` is a client class of the SDK that gets it: SDKs come with different packages of one interface.
    """
    roots = (c.__module__.partition(".")[0] for c in (() if like is None else like.__mro__))
    package = importlib.import_module(next((r for r in roots if r.startswith("httpx")), "httpx"))
    # The SDK's own limits of connections do not hold: ours is the one.
    limits = package.Limits(max_connections=None, max_keepalive_connections=64)
    return _kind(package)(limits=limits, **options)


@cache
def _kind(package: Any) -> Any:
    class Bounded(package.AsyncClient):  # type: ignore[misc]
        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            options["follow_redirects"] = False
            for _ in range(REDIRECTS + 1):
                response = await super().send(request, stream=True, **options)
                following = response.next_request
                if following is None:
                    return response if stream else await _read(package, response)
                await response.aclose()
                if _origin(following.url) != _origin(request.url):
                    raise Elsewhere(
                        f"the server points to {following.url.host}, another place than the address that was given: "
                        "nothing was sent there"
                    )
                request = following
            raise Elsewhere(f"the server redirected more than {REDIRECTS} times")

    return Bounded


async def _read(package: Any, response: Any) -> Any:
    """Return ``response`` with its body read piece by piece, so that a packed one is not unpacked without end."""
    body = bytearray()
    most = LARGEST_FILE if response.request.url.path.endswith("/content") else LARGEST
    try:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > most:
                raise TooLong(f"the answer is longer than {most} bytes")
    finally:
        await response.aclose()
    # As bytes, since a server may send what is no ASCII.
    kept = [(k, v) for k, v in response.headers.raw if k.lower() not in (b"content-encoding", b"content-length")]
    shown = {"request": response.request, "extensions": response.extensions}
    return package.Response(response.status_code, headers=kept, content=bytes(body), **shown)


def proxy_of(url: str) -> str:
    """Return the proxy of the environment for ``url``, as it may be shown; empty without one."""
    parts, proxies = urlsplit(url), getproxies()
    if parts.hostname and proxy_bypass(parts.hostname):
        return ""
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    keep_secrets_of_url(proxy)
    return hidden(proxy) or ""


def _origin(url: Any) -> tuple[str, str, int]:
    port = url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
    return url.scheme, url.host, port


def of_status(status: int, code: str = "", text: object = "") -> type[CallError]:
    """Return our kind of error for an HTTP status, the code in its body, and its text.

    >>> [of_status(n).code for n in (404, 429, 503, 422)]
    ['auth-failed', 'rate-limited', 'server-fault', 'bad-request']
    """
    if code in FILTER_CODES:
        return ContentFiltered
    if code in NO_ACCESS_CODES:
        return AuthFailed
    kind = STATUSES.get(status) or (ServerFault if status >= 500 else BadRequest)
    return PromptTooLong if kind is BadRequest and TOO_LONG.search(f"{code} {text}") else kind


def kind_of(error: BaseException) -> tuple[type[CallError], float | None]:
    """Return our kind of error for what an SDK raised, and how long its server asks to wait.

    By its code, else its HTTP status, else the name of its class or a base; else it is a passing fault of the server.
    """
    if isinstance(error.__cause__, CallError):
        return type(error.__cause__), None  # of our own client
    code = next((c for c in _held(error, "code") if isinstance(c, str)), "")
    status = _status(error)
    if status is not None or code in FILTER_CODES | NO_ACCESS_CODES:
        kind = of_status(status or 0, code)
    else:
        names = (c.__name__ for c in type(error).__mro__)
        kind = next((ERRORS[name] for name in names if name in ERRORS), ServerFault)
    if kind is BadRequest and TOO_LONG.search(f"{code} {error}"):
        kind = PromptTooLong
    response = next(_held(error, "response"), None)
    return kind, wait_s(kind, getattr(response, "headers", None))


def _status(error: BaseException) -> int | None:
    """Return the HTTP status that an error of an SDK, its response or its cause carries."""
    for place in (error, *_held(error, "response"), *_held(error, "__cause__")):
        for field in ("status_code", "http_status", "status"):
            value = getattr(place, field, None)
            if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
                return value
    return None


def _held(error: BaseException, field: str) -> Iterator[object]:
    """Yield the field of the error and of its cause."""
    for one in (error, error.__cause__):
        if (value := getattr(one, field, None)) is not None:
            yield value


def error_code(body: object) -> str:
    """Return the code of an error in a body, or ""."""
    inner = body.get("error", body) if isinstance(body, dict) else None
    code = inner.get("code") if isinstance(inner, dict) else None
    return code if isinstance(code, str) else ""


def said(body: object) -> str:
    """Return the message in the body of an error, in the forms that servers use, or ""."""
    if isinstance(body, str):
        return "an HTML page" if body.lstrip().startswith("<") else body
    if not isinstance(body, dict):
        return ""
    for field in ("message", "error", "detail", "msg"):
        value = body.get(field)
        if isinstance(value, list):  # FastAPI: one entry per field that it refuses
            value = value[0] if value else None
        if message := said(value):
            return message
    return ""


def brief(text: str) -> str:
    """Return a server's message on one line, cut."""
    text = " ".join(text.split())
    return text if len(text) <= DETAIL else text[: DETAIL - 1] + "…"


def wait_s(kind: type[CallError], headers: object) -> float | None:
    """Return how long a server asks to wait, where waiting helps: ``retry-after-ms``, else ``retry-after``.

    The latter may be an HTTP date (RFC 9110 section 10.2.3).
    """
    if not issubclass(kind, RateLimited | ServerFault) or not isinstance(headers, Mapping):
        return None
    lower = {str(name).lower(): str(value) for name, value in headers.items()}
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = lower.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return float(value) * scale
    if not value:
        return None
    try:
        when = parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError):
        return None
    return max(0.0, when - time.time())


def note(model: Model, headers: Mapping[str, str]) -> None:
    """Keep what a response says about limits, and hand it on."""
    lower = ((str(name).lower(), str(value)) for name, value in headers.items())
    model.rate_headers = dict(sorted((n, v) for n, v in lower if n.startswith(("x-ratelimit-", "retry-after"))))
    if model.on_headers is not None and model.rate_headers:
        model.on_headers(model.rate_headers)
