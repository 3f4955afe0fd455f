"""``http:FILE.yaml``: any JSON service over HTTP, described in a file (`auditor.models.http_file`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from auditor.core.errors import AuthFailed, BadRequest, BadResponse, CallError, CallTimeout, ServerFault
from auditor.core.protocols import Model, Reply, bare_text
from auditor.core.reading import from_json
from auditor.core.shown import plural, scrub
from auditor.core.types import Request, digest
from auditor.models import http_file, transport
from auditor.models.adapter import best_label, read_scores, token_limits, usage
from auditor.models.budget import Price

if TYPE_CHECKING:
    import httpx


class HttpTemplate(Model):
    """A service that a YAML file describes.

    The answer is the value at the file's path ``answer``: a text, or a number or truth value as JSON writes it. With
    ``rows`` the text of each request is one row as JSON.
    """

    def __init__(self, file: str, *, task: Any = None, rows: bool = False) -> None:
        self._template = template = http_file.read(file, rows=rows)
        self._rows = rows
        self.max_batch = template.batch or (http_file.ROWS_AT_ONCE if "rows" in template.holes else 1)
        self.proxy = transport.proxy_of(template.fill(template.url))
        self._task = task
        self.name = template.name or f"http:{file}"
        self.style: Literal["text", "chat"] = "text" if rows or "input" in template.holes else "chat"
        self.deterministic = template.deterministic
        self.price = None if template.price is None else Price(**template.price.model_dump())
        self._temperature = float(getattr(task, "temperature", 0.0))
        self._limits = token_limits(task)
        facts: dict[str, object] = {"adapter": "http.v2", "template": template.facts(), "style": self.style}
        if "max_tokens" in template.holes:
            facts["limits"] = {form: limit for form, limit in self._limits.items() if form}
        if "temperature" in template.holes:
            facts["temperature"] = self._temperature
        self.fingerprint = "http:" + digest(facts, size=16)
        self._client: httpx.AsyncClient | None = None

    def max_tokens(self, format: str) -> int:
        """Return the most tokens that an answer to a prompt of ``format`` may have."""
        return self._template.max_tokens or self._limits.get(format, self._limits[""])

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One call per request; one for all where the service takes rows."""
        outcomes: list[Reply | CallError] = []
        for part in [batch] if self._rows else [[request] for request in batch]:
            try:
                outcomes += await (self._decide(part) if self._rows else self._answer(*part))
            except CallError as error:
                outcomes += [error for _ in part]
        return outcomes

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _answer(self, request: Request) -> list[Reply]:
        return [self._read(await self._ask(self._values(request)))]

    async def _decide(self, batch: Sequence[Request]) -> list[Reply]:
        """One decision for each row."""
        rows = [from_json(request.prompt.text or "null") for request in batch]
        value = await self._ask({"row": rows[0], "rows": rows})
        way = self._template.answer
        assert way is not None
        texts = [_text(match.obj) for match in way.finditer(value)]
        if not texts or None in texts:
            raise BadResponse(self._clean(f"the answer has {http_file.lost(way, value)}"))
        if len(texts) != len(batch):
            raise BadResponse(f"{self.name}: {len(texts)} decisions for {plural(len(batch), 'row')}")
        return [Reply(text or "") for text in texts]

    async def _ask(self, values: Mapping[str, object]) -> Any:
        """Return the JSON value that the service answers; raise `CallError` where it answers none."""
        import httpx

        template = self._template
        try:
            body = None
            if template.request is not None:
                body = json.dumps(http_file.place(template.request, values), ensure_ascii=False).encode()
            query = {name: str(http_file.place(template.fill(value), values)) for name, value in template.query.items()}
            headers = {name: template.fill(value) for name, value in template.headers.items()}
            if body is not None:
                headers = {"Content-Type": "application/json", **headers}
            if self._client is None:
                self._client = transport.client(timeout=template.timeout_s)
            async with asyncio.timeout(template.timeout_s):
                response = await self._client.request(
                    template.method, template.fill(template.url), params=query or None, headers=headers, content=body
                )
        except UnicodeEncodeError:
            raise BadRequest("the prompt holds a lone surrogate, which no JSON request can carry") from None
        except CallError as error:  # of our own client
            raise type(error)(self._clean(str(error))) from None
        except (TimeoutError, httpx.TimeoutException):
            raise CallTimeout(f"{self.name}: no whole answer within {template.timeout_s:g} s") from None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise ServerFault(self._clean(f"{type(error).__name__}: {error}. Is the server running?")) from None
        transport.note(self, response.headers)
        try:
            value = from_json(response.content)
        except ValueError:
            if response.is_success:
                raise BadResponse(f"{self.name}: the answer is not valid JSON, or nested too deeply") from None
            value = response.content[: transport.DETAIL].decode("utf-8", "replace")
        if response.is_success:
            return value
        raise self._refused(response.status_code, value, response.headers)

    def _values(self, request: Request) -> dict[str, object]:
        """Return the values of the placeholders."""
        prompt = request.prompt
        values: dict[str, object] = {"max_tokens": self.max_tokens(prompt.format), "temperature": self._temperature}
        if self.style == "text":
            text = bare_text(prompt)
            if isinstance(text, CallError):
                raise text
            return {**values, "input": text}
        messages = prompt.payload().get("messages") or [{"role": "user", "content": prompt.text or ""}]
        system = "\n\n".join(m["content"] for m in messages if m["role"] == "system")
        apart = "system" in self._template.holes
        shown = [m["content"] for m in messages if not (apart and m["role"] == "system")]
        if apart:
            messages = [m for m in messages if m["role"] != "system"]
        return {**values, "messages": messages, "system": system, "prompt": "\n\n".join(shown)}

    def _refused(self, status: int, value: object, headers: Mapping[str, str]) -> CallError:
        kind = transport.of_status(status, transport.error_code(value), value)
        message = http_file.first_match(self._template.error, value)
        text = message if isinstance(message, str) else transport.said(value)
        hint = ". Check the key in the environment, and url in the file" if kind is AuthFailed else ""
        return kind(self._clean(f"HTTP {status}: {text}") + hint, retry_after_s=transport.wait_s(kind, headers))

    def _read(self, value: object) -> Reply:
        template = self._template
        if message := http_file.first_match(template.error, value):
            raise BadResponse(self._clean(f"the server reports an error: {message}"))
        scores: Mapping[str, float] | None = None
        if (chances := http_file.first_match(template.scores, value)) is not None:
            if not isinstance(chances, Mapping):
                raise BadResponse(f"{self.name}: scores must map labels to numbers")
            scores = read_scores(chances, self.name)
        text = http_file.first_match(template.answer, value)
        if text is None and template.answer is None and scores:
            text = best_label(scores)
        if (text := _text(text)) is None:
            way = template.answer or template.scores
            assert way is not None
            raise BadResponse(self._clean(f"the answer has {http_file.lost(way, value)}"))
        reported = http_file.first_match(template.model, value)
        counts = [http_file.first_match(way, value) for way in (template.usage.tokens_in, template.usage.tokens_out)]
        return Reply(
            text, scores=scores, usage=usage(*counts), model_reported=reported if isinstance(reported, str) else None
        )

    def _clean(self, text: str) -> str:
        """Return ``text`` on one line, cut, without secrets."""
        return f"{self.name}: {transport.brief(scrub(text))}"


def _text(value: object) -> str | None:
    """Return an answer as text: a number or a truth value as JSON writes it."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value if isinstance(value, str) else None
