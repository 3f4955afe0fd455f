"""``http:FILE.yaml``: any JSON service over HTTP, described in a file (`auditor.models.http_file`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ContentFiltered,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Usage, digest
from auditor.models import http_file, json_places
from auditor.models.bounded import LARGEST
from auditor.models.local import best_label, read_scores
from auditor.models.openai_wire import FILTER_CODES, error_code, rate_headers, retry_after, said
from auditor.models.prices import Price

if TYPE_CHECKING:
    import httpx

MAX_TOKENS = 256
DETAIL = 300  # characters of a server's message that are kept
_STATUS: Mapping[int, type[CallError]] = {
    401: AuthFailed,
    402: AuthFailed,
    403: AuthFailed,
    404: AuthFailed,  # no such path: the same for every prompt, so the run stops
    405: AuthFailed,
    407: AuthFailed,
    408: CallTimeout,
    409: ServerFault,
    425: ServerFault,
    429: RateLimited,
}


class HttpTemplate(Model):
    """A service that a YAML file describes.

    The answer is what stands at the file's path ``answer``: a text, or a number or truth value written as JSON
    writes it. Redirects are not followed: they could carry the key to another host. Values from the environment are
    taken out of every message; the fingerprint is made from their names.

    Parameters
    ----------
    file : str
        The file.
    task : Task or None
        Gives ``{{temperature}}`` and ``{{max_tokens}}``.
    price : Price or None
        Overrides the file's.

    Raises
    ------
    DataFileError
        The file is malformed; the message names file and line.
    ConfigError
        An environment variable that the file names is not set.
    """

    max_batch = 1
    cacheable = True

    def __init__(self, file: str, *, task: Any = None, price: Price | None = None) -> None:
        self._template = template = http_file.read(file)
        self._task = task
        self.name = template.name or f"http:{file}"
        self.style: Literal["text", "chat"] = template.style
        self.deterministic = template.deterministic
        self.price = price or template.price
        self._temperature = float(getattr(task, "temperature", 0.0))
        self._limits = {f: int(task.max_tokens(f)) for f in sorted(getattr(task, "formats", ()))}
        facts: dict[str, Any] = {"adapter": "http.v1", "template": template.facts(), "style": self.style}
        holes = json.dumps([template.request, template.query])
        if "max_tokens" in holes:
            facts["limits"] = self._limits
        if "temperature" in holes:
            facts["temperature"] = self._temperature
        self.fingerprint = "http:" + digest(facts, size=16)
        self.rate_headers: Mapping[str, str] = {}
        self.on_headers: Callable[[Mapping[str, str]], None] | None = None
        self._client: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"HttpTemplate({self._template.path!r})"

    def max_tokens(self, format: str) -> int:
        """Return the most tokens that an answer to a prompt of ``format`` may have."""
        own = self._template.max_tokens
        return own or self._limits.get(format, max(self._limits.values(), default=MAX_TOKENS))

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One call per request; the client hands over one at a time."""
        return [await self._ask(request) for request in batch]

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _ask(self, request: Request) -> Reply | CallError:
        import httpx

        template = self._template
        given = self._given(request)
        if isinstance(given, CallError):
            return given
        try:
            body = None
            if template.request is not None:
                body = json.dumps(json_places.place(template.request, given), ensure_ascii=False).encode()
            query = {
                name: str(json_places.place(template.fill(value) if isinstance(value, str) else value, given))
                for name, value in template.query.items()
            }
            headers = {name: template.fill(value) for name, value in template.headers.items()}
            if body is not None:
                headers = {"Content-Type": "application/json", **headers}
            async with asyncio.timeout(template.timeout_s):
                return await self._send(body, query, headers)
        except UnicodeEncodeError:
            return BadRequest("the prompt holds a lone surrogate, which no JSON request can carry")
        except (TimeoutError, httpx.TimeoutException):
            return CallTimeout(f"{self.name}: no whole answer within {template.timeout_s:g} s")
        except (httpx.TransportError, httpx.InvalidURL) as error:
            return ServerFault(self._clean(f"{type(error).__name__}: {error}. Is the server running?"))

    async def _send(
        self, body: bytes | None, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Reply | CallError:
        import httpx

        if self._client is None:
            # The user's proxy and certificates hold; the client's own limits do not: ours is the one.
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
            self._client = httpx.AsyncClient(timeout=self._template.timeout_s, limits=limits)
        async with self._client.stream(
            self._template.method,
            self._template.fill(self._template.url),
            params=query or None,
            headers=headers,
            content=body,
        ) as response:
            raw = b""
            async for chunk in response.aiter_bytes():
                raw += chunk
                if len(raw) > LARGEST:
                    return BadResponse(f"{self.name}: the answer is longer than {LARGEST} bytes")
        self.rate_headers = rate_headers(response.headers)
        if self.on_headers is not None and self.rate_headers:
            self.on_headers(self.rate_headers)
        if response.status_code >= 300:
            return self._refused(response.status_code, raw, retry_after(response.headers))
        return self._read(raw)

    def _given(self, request: Request) -> dict[str, Any] | CallError:
        """The values of the placeholders."""
        prompt = request.prompt
        given: dict[str, Any] = {
            "max_tokens": self.max_tokens(prompt.format),
            "temperature": self._temperature,
        }
        if self.style == "text":
            if prompt.text is None:
                return BadRequest("this model reads the bare text; it was sent chat messages")
            return {**given, "input": prompt.text}
        messages = prompt.payload().get("messages") or [{"role": "user", "content": prompt.text or ""}]
        system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
        apart = "{{system}}" in json.dumps([self._template.request, self._template.query]).replace(" ", "")
        shown = [m["content"] for m in messages if not (apart and m["role"] == "system")]
        if apart:
            messages = [m for m in messages if m["role"] != "system"]
        return {**given, "messages": messages, "system": system, "prompt": "\n\n".join(shown)}

    def _refused(self, status: int, raw: bytes, wait: float | None) -> CallError:
        if status < 400:
            return BadRequest(
                f"{self.name}: HTTP {status}: the server points elsewhere; write its address as url"
            )
        kind = _STATUS.get(status) or (ServerFault if status >= 500 else BadRequest)
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = raw[:DETAIL].decode("utf-8", "replace")
        if error_code(value) in FILTER_CODES:
            kind = ContentFiltered
        message = json_places.follow(value, self._template.error)
        text = message if isinstance(message, str) else said(value)
        hint = ". Check the key in the environment, and url in the file" if kind is AuthFailed else ""
        error = self._clean(f"HTTP {status}: {text}")
        return kind(f"{error}{hint}", retry_after_s=wait if kind in (RateLimited, ServerFault) else None)

    def _read(self, raw: bytes) -> Reply | CallError:
        template = self._template
        try:
            value = json.loads(raw)
        except ValueError:
            return BadResponse(f"{self.name}: the answer is not valid JSON")
        except RecursionError:
            return BadResponse(f"{self.name}: the answer's JSON is nested too deeply")
        if message := json_places.follow(value, template.error):
            return BadResponse(self._clean(f"the server reports an error: {message}"))
        scores: Mapping[str, float] | None = None
        if (found := json_places.follow(value, template.scores)) is not None:
            if not isinstance(found, Mapping):
                return BadResponse(f"{self.name}: what stands at scores is no mapping of labels to numbers")
            try:
                scores = read_scores(found, self.name)
            except BadResponse as error:
                return error
        text = json_places.follow(value, template.answer)
        if text is None and template.answer is None and scores:
            text = best_label(scores)
        if isinstance(text, bool | int | float):
            text = json.dumps(text)
        if not isinstance(text, str):
            where = json_places.told(template.answer or template.scores or ())
            return BadResponse(f"{self.name}: the answer holds no text at {where}")
        reported = json_places.follow(value, template.model)
        return Reply(
            text,
            scores=scores,
            usage=self._usage(value),
            model_reported=reported if isinstance(reported, str) else None,
        )

    def _usage(self, value: Any) -> Usage | None:
        told = [json_places.follow(value, p) for p in (self._template.tokens_in, self._template.tokens_out)]
        numbers = [n for n in told if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
        return Usage(tokens_in=numbers[0], tokens_out=numbers[1]) if len(numbers) == 2 else None

    def _clean(self, text: str) -> str:
        """``text`` on one line, cut, without the values that came from the environment."""
        text = " ".join(text.split())
        for secret in self._template.secrets:
            text = text.replace(secret, "[key]")
        text = text if len(text) <= DETAIL else text[: DETAIL - 1] + "…"
        return f"{self.name}: {text}"
