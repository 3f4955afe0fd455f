"""``http:FILE.yaml``: any JSON service over HTTP, described in a file (`auditor.models.http_file`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from auditor.core.counting import plural
from auditor.core.decoded import from_json
from auditor.core.errors import AuthFailed, BadRequest, BadResponse, CallError, CallTimeout, ServerFault
from auditor.core.protocols import Model, Reply
from auditor.core.types import Request, Usage, digest
from auditor.models import bounded, http_file, json_places
from auditor.models.faults import of_status, wait_s
from auditor.models.local import best_label, read_scores
from auditor.models.openai_wire import error_code, rate_headers, said
from auditor.models.prices import Price

if TYPE_CHECKING:
    import httpx

MAX_TOKENS = 256
DETAIL = 300  # characters of a server's message that are kept


class HttpTemplate(Model):
    """A service that a YAML file describes.

    The answer is what stands at the file's path ``answer``: a text, or a number or truth value written as JSON
    writes it. Redirects to another host are not followed: they could carry the key there. Values from the environment
    are taken out of every message; the fingerprint is made from their names.

    Parameters
    ----------
    file : str
        The file.
    task : Task or None
        Gives ``{{temperature}}`` and ``{{max_tokens}}``.
    price : Price or None
        Overrides the file's.
    rows : bool
        Whether it decides on rows: the text of each request is then one row as JSON.

    Raises
    ------
    DataFileError
        The file is malformed; the message names file and line.
    ConfigError
        An environment variable that the file names is not set.
    """

    def __init__(self, file: str, *, task: Any = None, price: Price | None = None, rows: bool = False) -> None:
        self._template = template = http_file.read(file, rows=rows)
        self._rows, self._understood = rows, False
        self.max_batch = template.batch
        self._task = task
        self.name = template.name or f"http:{file}"
        self.style: Literal["text", "chat"] = template.style
        self.deterministic = template.deterministic
        self.price = price or template.price
        self._temperature = float(getattr(task, "temperature", 0.0))
        self._limits = {f: int(task.max_tokens(f)) for f in sorted(getattr(task, "formats", ()))}
        facts: dict[str, object] = {"adapter": "http.v1", "template": template.facts(), "style": self.style}
        holes = json.dumps([template.request, template.query])
        if "max_tokens" in holes:
            facts["limits"] = self._limits
        if "temperature" in holes:
            facts["temperature"] = self._temperature
        self.fingerprint = "http:" + digest(facts, size=16)
        self._client: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"HttpTemplate({self._template.path!r})"

    def max_tokens(self, format: str) -> int:
        """Return the most tokens that an answer to a prompt of ``format`` may have."""
        own = self._template.max_tokens
        return own or self._limits.get(format, max(self._limits.values(), default=MAX_TOKENS))

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One call per request; one for all where the service takes rows."""
        return await self._decide(batch) if self._rows else [await self._answer(request) for request in batch]

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _answer(self, request: Request) -> Reply | CallError:
        given = self._given(request)
        if isinstance(given, CallError):
            return given
        value = await self._ask(given)
        return value if isinstance(value, CallError) else self._read(value)

    async def _decide(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One decision for each row."""
        rows = [from_json(request.prompt.text or "null") for request in batch]
        value = await self._ask({"row": rows[0], "rows": rows})
        if isinstance(value, CallError):
            # Where no answer could be read so far, the file is wrong, so the run stops.
            return [self._unread(str(value)) if isinstance(value, BadResponse) else value for _ in batch]
        way = self._template.answer or ()
        found = json_places.follow(value, way)
        answers = found if json_places.EACH in way else [found]
        if not isinstance(answers, list) or None in answers:
            return [self._unread(f"the answer has {json_places.lost(value, way)}") for _ in batch]
        if len(answers) != len(batch):
            return [self._unread(f"{len(answers)} decisions for {plural(len(batch), 'row')}") for _ in batch]
        self._understood = True
        read = [_text(answer) for answer in answers]
        return [
            BadResponse("the decision is not a text, a number, or true or false") if text is None else Reply(text)
            for text in read
        ]

    def _unread(self, what: str) -> CallError:
        return BadResponse(what) if self._understood else AuthFailed(f"{what}. Is the file of {self.name} right?")

    async def _ask(self, given: Mapping[str, object]) -> Any:
        """The JSON value that the service answers, or the error."""
        import httpx

        template = self._template
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
            if self._client is None:
                self._client = bounded.client(timeout=template.timeout_s)
            async with asyncio.timeout(template.timeout_s):
                response = await self._client.request(
                    template.method, template.fill(template.url), params=query or None, headers=headers, content=body
                )
        except UnicodeEncodeError:
            return BadRequest("the prompt holds a lone surrogate, which no JSON request can carry")
        except CallError as error:  # of our own client
            return type(error)(self._clean(str(error)))
        except (TimeoutError, httpx.TimeoutException):
            return CallTimeout(f"{self.name}: no whole answer within {template.timeout_s:g} s")
        except (httpx.TransportError, httpx.InvalidURL) as error:
            return ServerFault(self._clean(f"{type(error).__name__}: {error}. Is the server running?"))
        self.rate_headers = rate_headers(response.headers)
        if self.on_headers is not None and self.rate_headers:
            self.on_headers(self.rate_headers)
        try:
            value = from_json(response.content)
        except ValueError:
            value = BadResponse(f"{self.name}: the answer is not valid JSON, or nested too deeply")
        if response.is_success:
            return value
        shown = response.content[:DETAIL].decode("utf-8", "replace") if isinstance(value, BadResponse) else value
        return self._refused(response.status_code, shown, response.headers)

    def _given(self, request: Request) -> dict[str, object] | CallError:
        """The values of the placeholders."""
        prompt = request.prompt
        given: dict[str, object] = {"max_tokens": self.max_tokens(prompt.format), "temperature": self._temperature}
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

    def _refused(self, status: int, value: object, headers: Mapping[str, str]) -> CallError:
        kind = of_status(status, error_code(value))
        message = json_places.follow(value, self._template.error)
        text = message if isinstance(message, str) else said(value)
        hint = ". Check the key in the environment, and url in the file" if kind is AuthFailed else ""
        return kind(self._clean(f"HTTP {status}: {text}") + hint, retry_after_s=wait_s(kind, headers))

    def _read(self, value: object) -> Reply | CallError:
        template = self._template
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
        if (text := _text(text)) is None:
            where = json_places.lost(value, template.answer or template.scores or ())
            return BadResponse(f"{self.name}: the answer has {where}")
        reported = json_places.follow(value, template.model)
        return Reply(
            text,
            scores=scores,
            usage=self._usage(value),
            model_reported=reported if isinstance(reported, str) else None,
        )

    def _usage(self, value: object) -> Usage | None:
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


def _text(value: object) -> str | None:
    """An answer as text: a number or a truth value as JSON writes it."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value if isinstance(value, str) else None
