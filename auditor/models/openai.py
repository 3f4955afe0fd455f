"""Chat models behind the OpenAI protocol: the provider itself and every compatible server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from auditor.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ConfigError,
    ContentFiltered,
    RateLimited,
    ServerFault,
)
from auditor.models.prices import Price, lookup
from auditor.protocols import Reply
from auditor.types import Request, Usage, digest

if TYPE_CHECKING:
    from openai import AsyncOpenAI

PROVIDER = "https://api.openai.com/v1"
MAX_TOKENS = 256  # where the task does not say
REASONING_TOKENS = 4096  # models that think before they answer spend tokens of the same allowance
_REASONING = re.compile(r"(o\d|gpt-[5-9])(?!.*-chat)")
_DETAIL = 300  # characters of a server's message that are kept

# Every public exception of the openai package. Looked up along the class's bases, so that a class that a
# later version adds falls to its parent's entry.
ERRORS: Mapping[str, type[CallError]] = {
    "OpenAIError": BadRequest,  # what the SDK refuses before it sends anything
    "APIError": ServerFault,
    "APIStatusError": BadRequest,
    "APIConnectionError": ServerFault,
    "APITimeoutError": CallTimeout,
    "APIResponseValidationError": BadResponse,
    "AuthenticationError": AuthFailed,
    "OAuthError": AuthFailed,
    "PermissionDeniedError": AuthFailed,
    "SubjectTokenProviderError": AuthFailed,
    # No such model or path: the same for every prompt, so the run stops.
    "NotFoundError": AuthFailed,
    "BadRequestError": BadRequest,
    "UnprocessableEntityError": BadRequest,
    "ConflictError": ServerFault,  # a lock in the server that passes
    "RateLimitError": RateLimited,
    "InternalServerError": ServerFault,
    "LengthFinishReasonError": BadResponse,
    "ContentFilterFinishReasonError": ContentFiltered,
    "InvalidWebhookSignatureError": BadResponse,
    "WebSocketQueueFullError": ServerFault,
    "WebSocketConnectionClosedError": ServerFault,
}
_STATUS: Mapping[int, type[CallError]] = {
    402: AuthFailed,
    407: AuthFailed,
    408: CallTimeout,
    425: ServerFault,
}
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
_NO_ACCESS_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "account_deactivated"})


class OpenAIChat:
    """One chat model of an OpenAI-compatible server.

    The reply is the text of the first choice. A refusal that the model wrote (the ``refusal`` field) is
    its text too: the task's parser decides what it means. An answer that the provider's filter cut or
    replaced is `ContentFiltered`. An empty answer is an answer.

    Parameters
    ----------
    name : str
        The model's name at the server.
    base_url : str or None
        The server; None means ``OPENAI_BASE_URL``, else the provider.
    task : Task or None
        Gives the temperature, and for each prompt format the most tokens that an answer needs.
    max_tokens : int or None
        Overrides the task's limits; 256 where neither says.
    temperature : float or "task" or "server"
        "task" (default) is the task's, or 0 without a task; "server" sends none.
    seed : int or None
        Sent if given. Servers promise best effort only, so the model never counts as deterministic.
    timeout_s : float
        Seconds for one whole call: a server that drips bytes does not extend it.
    price : Price or None
        Overrides the list price.
    api_key : str or None
        None means ``OPENAI_API_KEY``. A server given by URL needs none.

    Raises
    ------
    ConfigError
        No name, no key for the provider, or a URL that is none.
    """

    style: Literal["text", "chat"] = "chat"
    deterministic = False
    cacheable = True
    max_batch = 1

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        task: Any = None,
        max_tokens: int | None = None,
        temperature: float | Literal["task", "server"] = "task",
        seed: int | None = None,
        timeout_s: float = 60.0,
        price: Price | None = None,
        api_key: str | None = None,
    ) -> None:
        if not name:
            raise ConfigError(
                "openai: names no model. Write --model openai:NAME, for example openai:gpt-4o-mini"
            )
        self.name = f"openai:{name}"
        self.model = name
        url = (base_url or os.environ.get("OPENAI_BASE_URL") or PROVIDER).strip().rstrip("/")
        self._url, self._host, self.server = url, *_place(url)
        at_provider = self._host == urlsplit(PROVIDER).hostname
        self._key = _checked_key(
            api_key or os.environ.get("OPENAI_API_KEY", ""), self.name, needed=at_provider
        )
        self._limits = _limits(task, max_tokens)
        if temperature == "task":
            temperature = getattr(task, "temperature", 0.0)
        self._limit_name = "max_tokens"
        self._params: dict[str, Any] = {} if seed is None else {"seed": seed}
        if at_provider and _REASONING.match(name):
            # These refuse any temperature, and know the limit only under its newer name.
            self._limits = {form: limit + REASONING_TOKENS for form, limit in self._limits.items()}
            self._limit_name = "max_completion_tokens"
        elif temperature != "server":
            self._params["temperature"] = temperature
        self.price = price or lookup(name, self._host)
        self.fingerprint = "openai:" + digest(
            {"server": self.server, "model": name, "params": self._params, "limits": self._limits}, size=16
        )
        self._timeout_s = timeout_s
        self._client: AsyncOpenAI | None = None

    def __repr__(self) -> str:
        return f"OpenAIChat({self.model!r}, server={self.server!r})"

    def max_tokens(self, format: str) -> int:
        """Return the most tokens that an answer to a prompt of ``format`` may have."""
        return self._limits.get(format, self._limits[""])

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One call per request; the client hands over one at a time."""
        return [await self._ask(request) for request in batch]

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _connect(self) -> AsyncOpenAI:
        if self._client is None:
            from openai import AsyncOpenAI

            self._client = AsyncOpenAI(
                base_url=self._url,
                api_key=self._key or "no-key",
                max_retries=0,
                timeout=self._timeout_s,
            )
        return self._client

    async def _ask(self, request: Request) -> Reply | CallError:
        client = self._connect()
        from openai import OpenAIError

        if request.prompt.messages is None:
            messages: list[Any] = [{"role": "user", "content": request.prompt.text}]
        else:
            messages = [{"role": m.role, "content": m.content} for m in request.prompt.messages]
        options = {**self._params, self._limit_name: self.max_tokens(request.prompt.format)}
        try:
            async with asyncio.timeout(self._timeout_s):
                raw = await client.chat.completions.with_raw_response.create(
                    model=self.model, messages=messages, **options
                )
            return read_completion(raw.content, raw.headers.get("content-type"))
        except TimeoutError:
            return CallTimeout(f"no whole answer from {self.server} within {self._timeout_s:g} s")
        except UnicodeEncodeError:
            return BadRequest("the prompt holds a lone surrogate, which no JSON request can carry")
        except OpenAIError as error:
            return self._translate(error)

    def _translate(self, error: Exception) -> CallError:
        """Our error for one of the SDK's, without keys, headers or the chain of causes."""
        kind = next((ERRORS[c.__name__] for c in type(error).__mro__ if c.__name__ in ERRORS), BadRequest)
        status = getattr(error, "status_code", None)
        code = str(getattr(error, "code", None) or "")
        if isinstance(status, int) and type(error).__name__ == "APIStatusError":
            kind = _STATUS.get(status, kind)
        if code in _FILTER_CODES:
            kind = ContentFiltered
        elif code in _NO_ACCESS_CODES:
            kind = AuthFailed  # OpenAI sends 429 for an account without credit; waiting does not help
        wait = None
        response = getattr(error, "response", None)
        if response is not None and kind in (RateLimited, ServerFault):
            wait = retry_after(response.headers)
        return kind(self._say(error, kind, status), retry_after_s=wait)

    def _say(self, error: Exception, kind: type[CallError], status: int | None) -> str:
        said = " ".join((_said(getattr(error, "body", None)) or str(error)).split())
        if self._key:
            said = said.replace(self._key, "[key]")
        said = said if len(said) <= _DETAIL else said[: _DETAIL - 1] + "…"
        if isinstance(status, int):
            text = f"{self.server}: HTTP {status}: {said}"
        else:
            cause = error.__cause__ or error.__context__
            why = f" ({type(cause).__name__}: {str(cause)[:_DETAIL]})" if cause is not None else ""
            text = f"{self.server}: {said}{why}"
            if self._key:
                text = text.replace(self._key, "[key]")
        if status == 404:
            return f"{text}. Check the model name {self.model!r} and --base-url; the path usually ends in /v1"
        if kind in (ServerFault, CallTimeout) and status is None:
            return f"{text}. Is the server running? Check --base-url"
        if kind is AuthFailed:
            return f"{text}. Check OPENAI_API_KEY and what it may use"
        return text


def read_completion(body: bytes, content_type: str | None) -> Reply | CallError:
    """The reply in the body of a chat completion, or why it is none.

    Read here and not by the SDK, which hands out HTML as text and fields of the wrong type as they are.

    Examples
    --------
    >>> read_completion(b'{"choices": [{"message": {"content": "yes"}}]}', "application/json").text
    'yes'
    """
    if content_type is not None and "json" not in content_type.partition(";")[0].lower():
        return BadResponse(
            f"the answer's content type is {content_type.partition(';')[0].strip()!r}, not JSON"
        )
    try:
        raw = json.loads(body)
    except ValueError:  # also UnicodeDecodeError
        return BadResponse("the answer is not valid JSON")
    except RecursionError:
        return BadResponse("the answer's JSON is nested too deeply")
    choices = raw.get("choices") if isinstance(raw, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        # Some servers report their errors with status 200.
        said = _said(raw)[:_DETAIL] if isinstance(raw, dict) else ""
        return BadResponse(f"the answer has no choices{': ' if said else ''}{said}")
    choice = choices[0]
    if choice.get("finish_reason") == "content_filter":
        return ContentFiltered("the provider's filter cut the answer (finish_reason content_filter)")
    message = choice.get("message")
    if not isinstance(message, dict):
        return BadResponse("the answer's first choice has no message")
    content = message.get("content")
    if not content and isinstance(message.get("refusal"), str):
        content = message["refusal"]
    if content is None:
        content = ""
    if not isinstance(content, str):
        return BadResponse("the answer's content is not a text")
    reported = raw.get("model")
    return Reply(
        content,
        usage=_usage(raw.get("usage")),
        model_reported=reported if isinstance(reported, str) else None,
    )


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


def _limits(task: Any, given: int | None) -> dict[str, int]:
    """Tokens by prompt format; "" for any other."""
    if given is not None:
        return {"": given}
    formats = sorted(getattr(task, "formats", ()))
    limits = {form: int(task.max_tokens(form)) for form in formats}
    return {**limits, "": max(limits.values(), default=MAX_TOKENS)}


def _usage(raw: object) -> Usage | None:
    if not isinstance(raw, dict):
        return None
    tokens_in, tokens_out = raw.get("prompt_tokens"), raw.get("completion_tokens")
    if not (isinstance(tokens_in, int) and isinstance(tokens_out, int) and min(tokens_in, tokens_out) >= 0):
        return None
    return Usage(tokens_in=tokens_in, tokens_out=tokens_out)


def _said(body: object) -> str:
    """The message in the body of an error, in the forms that servers use; empty if there is none."""
    if isinstance(body, str):
        return "an HTML page" if body.lstrip().startswith("<") else body
    if not isinstance(body, dict):
        return ""
    for field in ("message", "error", "detail", "msg"):
        value = body.get(field)
        if isinstance(value, list):  # FastAPI: one entry per field that it refuses
            value = value[0] if value else None
        if said := _said(value):
            return said
    return ""


def _place(url: str) -> tuple[str, str]:
    """Host, and host with port and path: what may be shown and what identifies a server."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError(f"--base-url is not a URL ({error}). Example: http://127.0.0.1:8000/v1") from error
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(
            "--base-url (or OPENAI_BASE_URL) must start with http:// or https:// and name a host, "
            "for example http://127.0.0.1:8000/v1"
        )
    return host, f"{host}{f':{port}' if port else ''}{parts.path}"


def _checked_key(key: str, name: str, *, needed: bool) -> str:
    key = key.strip()
    if not key and needed:
        raise ConfigError(
            f"{name} needs a key. Run: export OPENAI_API_KEY=… (or --base-url URL for a server of your own)"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError("OPENAI_API_KEY holds characters that no HTTP header can carry; set it again")
    return key
