"""``http:FILE.yaml``: any JSON service over HTTP, described in a file (`EXAMPLE`); errors in it name the line.

``${NAME}`` is taken from the environment, in the URL, headers and query. A placeholder that is a whole text becomes its
JSON value; inside a longer text it is put in as text. The body is serialized after that, so a tested text cannot change
the request's structure. Paths into the reply are JSONPath (RFC 9535); ``$`` in front may be left out. A service for
rows is sent ``{{row}}``, or several as ``{{rows}}``; ``answer`` then finds one decision a row, in order.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

import jsonpath
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ConfigError,
    DataFileError,
    ServerFault,
)
from auditor.core.options import near
from auditor.core.protocols import Model, Reply, bare_text
from auditor.core.reading import Where, checked, from_json, load_fields
from auditor.core.reading import place as place_of
from auditor.core.shown import keep_secret, keep_secrets_of_url, plural, scrub
from auditor.core.types import Request, digest
from auditor.models import transport
from auditor.models.adapter import best_label, read_scores, token_limits, usage
from auditor.models.limits import Price

if TYPE_CHECKING:
    import httpx

LARGEST = 256 * 1024  # bytes of such a file
PLACEHOLDERS = ("input", "prompt", "messages", "system", "max_tokens", "temperature")
OF_ROWS = ("row", "rows")
ROWS_AT_ONCE = 50
SHOWN = 120  # characters of an answer in messages
HOLE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)

EXAMPLE = """For a chat service it reads:
    format: 1
    url: https://service.example.org/v1/answer
    headers: {Authorization: "Bearer ${SERVICE_KEY}"}   # from the environment
    request: {messages: "{{messages}}", max_tokens: "{{max_tokens}}"}
    answer: choices[0].message.content                  # where the reply holds the answer"""


class HttpTemplate(Model):
    """A service that a YAML file describes.

    The answer is the value at the file's path ``answer``: a text, or a number or truth value as JSON writes it. With
    ``rows`` the text of each request is one row as JSON.
    """

    def __init__(self, file: str, *, task: Any = None, rows: bool = False) -> None:
        self._template = template = read(file, rows=rows)
        self._rows = rows
        self.max_batch = template.batch or (ROWS_AT_ONCE if "rows" in template.holes else 1)
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
                outcomes += (
                    await self._decide(part) if self._rows else [self._read(await self._ask(self._values(*part)))]
                )
            except CallError as error:
                outcomes += [error for _ in part]
        return outcomes

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _decide(self, batch: Sequence[Request]) -> list[Reply]:
        """One decision for each row."""
        rows = [from_json(request.prompt.text or "null") for request in batch]
        value = await self._ask({"row": rows[0], "rows": rows})
        way = self._template.answer
        assert way is not None
        texts = [_text(match.obj) for match in way.finditer(value)]
        if not texts or None in texts:
            raise BadResponse(self._clean(f"the answer has {lost(way, value)}"))
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
                body = json.dumps(place(template.request, values), ensure_ascii=False).encode()
            query = {name: str(place(template.fill(value), values)) for name, value in template.query.items()}
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
        message = first_match(self._template.error, value)
        text = message if isinstance(message, str) else transport.said(value)
        hint = ". Check the key in the environment, and url in the file" if kind is AuthFailed else ""
        return kind(self._clean(f"HTTP {status}: {text}") + hint, retry_after_s=transport.wait_s(kind, headers))

    def _read(self, value: object) -> Reply:
        template = self._template
        if message := first_match(template.error, value):
            raise BadResponse(self._clean(f"the server reports an error: {message}"))
        scores: Mapping[str, float] | None = None
        if (chances := first_match(template.scores, value)) is not None:
            if not isinstance(chances, Mapping):
                raise BadResponse(f"{self.name}: scores must map labels to numbers")
            scores = read_scores(chances, self.name)
        text = first_match(template.answer, value)
        if text is None and template.answer is None and scores:
            text = best_label(scores)
        if (text := _text(text)) is None:
            way = template.answer or template.scores
            assert way is not None
            raise BadResponse(self._clean(f"the answer has {lost(way, value)}"))
        reported = first_match(template.model, value)
        counts = [first_match(way, value) for way in (template.usage.tokens_in, template.usage.tokens_out)]
        return Reply(
            text, scores=scores, usage=usage(*counts), model_reported=reported if isinstance(reported, str) else None
        )

    def _clean(self, text: str) -> str:
        """Return ``text`` on one line, cut, without secrets."""
        return f"{self.name}: {transport.brief(scrub(text))}"


def _text(value: object) -> str | None:
    """Return an answer as text: a number or a truth value as JSON writes it."""
    return json.dumps(value) if isinstance(value, bool | int | float) else value if isinstance(value, str) else None


# -- the file ---------------------------------------------------------------------------------------------------------


def _path(text: object) -> jsonpath.JSONPath:
    if not isinstance(text, str):
        raise ValueError("write a path, for example choices[0].message.content")
    try:
        path = jsonpath.compile(text)
    except jsonpath.JSONPathError as error:
        raise ValueError(f"{text!r} is not a path ({str(error).splitlines()[0]})") from None
    if not isinstance(path, jsonpath.JSONPath) or ".." in str(path):
        raise ValueError(f"{text!r} may be found at many places; name one, for example choices[0].message.content")
    return path


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


Way = Annotated[jsonpath.JSONPath, BeforeValidator(_path)]
Value = str | int | float
Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Usage(_Strict):
    """Paths to the numbers of tokens."""

    tokens_in: Way | None = None
    tokens_out: Way | None = None


class Tokens(_Strict):
    """Prices in US dollars per million tokens."""

    input_usd: Dollars
    output_usd: Dollars


class Template(_Strict):
    """A file; ``url``, ``headers`` and ``query`` still hold ``${NAME}``, and `fill` puts in the values."""

    format: Literal[1]
    url: str
    name: str | None = None
    method: Annotated[Literal["POST", "PUT", "PATCH", "GET"], BeforeValidator(lambda m: str(m).upper())] = "POST"
    headers: dict[str, Value] = {}
    query: dict[str, Value] = {}
    request: Any = None
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60.0
    deterministic: bool = False
    answer: Way | None = None
    scores: Way | None = None
    usage: Usage = Usage()
    model: Way | None = None
    error: Way | None = None
    price: Tokens | None = None
    max_tokens: int | None = None
    batch: Annotated[int, Field(ge=1)] | None = None  # rows of one request
    _variables: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def variables(self) -> Mapping[str, str]:
        """Values of the environment by name."""
        return self._variables

    @property
    def holes(self) -> set[str]:
        """Return the placeholders in request and query."""
        return {name for _, text in self.texts() for name in HOLE.findall(text)}

    def texts(self) -> Iterator[tuple[Where, str]]:
        """Yield every text of request and query that is no key, with its place."""
        return _texts({"request": self.request, "query": self.query}, ())

    def pairs(self, field: Literal["headers", "query"]) -> list[tuple[Where, str]]:
        """Return place and text of each header, or each part of the query."""
        values: dict[str, Value] = getattr(self, field)
        return [((field, name), str(value)) for name, value in values.items()]

    def fill(self, value: Value) -> str:
        """Return ``value`` as text, with the values of its ``${NAME}``."""
        return _VARIABLE.sub(lambda match: self._variables[match.group(1)], str(value))

    def facts(self) -> dict[str, object]:
        """Return what shapes the answers: the host that is asked, and names of variables, never their values."""
        host = urlsplit(self.fill(self.url))
        return {
            "host": f"{host.hostname}:{host.port}",
            "url": re.sub(r"//[^/@]*@", "//", self.url),
            "method": self.method,
            "headers": {
                name: value if "${" not in str(value) else _VARIABLE.findall(str(value))
                for name, value in sorted(self.headers.items())
            },
            "query": self.query,
            "request": self.request,
            "paths": [str(self.answer), str(self.scores)],
        }


def read(file: str, *, rows: bool = False) -> Template:
    """Read and check a file; ``rows``: of a service that decides on rows. Errors name the line."""
    path = Path(file)
    raw, lines = load_fields(path, largest=LARGEST, missing=f" {EXAMPLE}", empty=f". {EXAMPLE}")
    template = checked(Template, raw, path, lines)
    for where, text in ((("url",), template.url), *template.pairs("headers"), *template.pairs("query")):
        for name in _VARIABLE.findall(text):
            value = os.environ.get(name, "").strip()
            if re.fullmatch(r"[A-Za-z_]\w*", name) and not value:
                message = f"{place_of(path, lines, where)}: the environment variable {name} is not set."
                raise ConfigError(message, below=f"Run: export {name}=…")
            if not (value and value.isascii() and value.isprintable()):
                message = f"{place_of(path, lines, where)}: ${{{name}}} holds no value that an HTTP header can carry"
                raise DataFileError(message)
            keep_secret(value)
            template._variables[name] = value
    for where, problem in (*_problems(template, rows), *(_of_rows if rows else _of_texts)(template)):
        raise DataFileError(f"{place_of(path, lines, where)}: {problem}")
    keep_secrets_of_url(template.fill(template.url))
    return template


def _problems(template: Template, rows: bool) -> Iterator[tuple[Where, str]]:
    """Yield what no single field says: where, and what is wrong."""
    if template.answer is None and template.scores is None:
        yield (), "the field answer (or scores) is missing: where the reply holds the model's answer"
    parts = urlsplit(template.fill(template.url))
    if parts.scheme not in ("http", "https") or not parts.hostname or "{{" in template.url:
        yield ("url",), "url must start with http:// or https://, name a host, and hold no {{…}}"
    if template.method == "GET" and template.request is not None:
        yield ("request",), "a GET request has no body; put the text into query"
    for where, value in template.pairs("headers"):
        name = str(where[1])
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
            yield where, f"{name!r} is not the name of a header"
        if not (value.isascii() and value.isprintable()) or "{{" in value:
            yield where, f"the value of {name} must be plain ASCII without {{{{…}}}}"
        if _SECRET_HEADER.search(name) and "${" not in value:
            yield where, f"a secret does not belong into a file: write {name}: ${{NAME}} and export NAME=…"
    allowed = OF_ROWS if rows else PLACEHOLDERS
    for where, text in template.texts():
        for name in HOLE.findall(text):
            if name not in allowed:
                yield where, f"unknown placeholder {{{{{name}}}}}.{near(name, allowed)}"
            if name in ("messages", *OF_ROWS) and (not HOLE.fullmatch(text.strip()) or where[0] == "query"):
                yield where, f"{{{{{name}}}}} is not a text: it must be the whole value, in request"


def _of_texts(template: Template) -> Iterator[tuple[Where, str]]:
    texts = template.holes & {"input", "prompt", "messages", "system"}
    if not texts - {"system"}:
        yield ("request",), "request must hold {{messages}}, {{prompt}} or {{input}}"
    if "input" in texts and len(texts) > 1:
        hint = "for a service with a prompt of its own; it does not go with {{prompt}}, {{messages}} or {{system}}"
        yield ("request",), f"{{{{input}}}} is the bare text, {hint}"
    if template.answer is not None and not template.answer.singular_query():
        yield ("answer",), "answer must name one place, without [*]"


def _of_rows(template: Template) -> Iterator[tuple[Where, str]]:
    if len(template.holes) != 1:
        yield ("request",), "request must hold either {{row}} (one row) or {{rows}} (a list of rows)"
    many, answer = "rows" in template.holes, template.answer
    if answer is None or answer.singular_query() == many:
        yield ("answer",), "answer has one [*], e.g. predictions[*].label, if and only if request holds {{rows}}"
    if (template.batch or 1) > 1 and not many:
        yield ("batch",), f"batch must be 1 where request holds {{{{row}}}}; got {template.batch}"


def _texts(value: object, where: Where) -> Iterator[tuple[Where, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*where, str(key)))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _texts(item, (*where, i))


def place(value: object, values: Mapping[str, object]) -> Any:
    """Return ``value`` with its placeholders replaced: a whole text by the value itself, a part of one by text.

    >>> place({"n": "{{max_tokens}}", "t": "Say: {{prompt}}"}, {"prompt": 'a"b', "max_tokens": 8})
    {'n': 8, 't': 'Say: a"b'}
    """
    if isinstance(value, str):
        if whole := HOLE.fullmatch(value.strip()):
            return values[whole.group(1)]
        return HOLE.sub(lambda match: str(values[match.group(1)]), value)
    if isinstance(value, Mapping):
        return {key: place(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [place(item, values) for item in value]
    return value


def first_match(path: jsonpath.JSONPath | None, value: object) -> object:
    """Return the first value at the path; None without one, or without a path."""
    match = None if path is None else path.match(value)  # type: ignore[arg-type]
    return None if match is None else match.obj


def lost(path: jsonpath.JSONPath, value: object) -> str:
    """Say that a path finds no text, and show the beginning of what it was looked for in."""
    return f"no text at {path}: {json.dumps(value, ensure_ascii=False)[:SHOWN]}"
