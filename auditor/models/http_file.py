"""The file behind ``http:FILE.yaml`` (`EXAMPLE`): read, checked, with the line of an error.

``${NAME}`` is taken from the environment, in the URL, headers and query. A placeholder that is a whole text becomes its
JSON value; inside a longer text it is put in as text. The body is serialized after that, so a tested text cannot change
the request's structure. Paths into the reply are JSONPath (RFC 9535); ``$`` in front may be left out. A service for
rows is sent ``{{row}}``, or several as ``{{rows}}``; ``answer`` then finds one decision a row, in order.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import jsonpath
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr

from auditor.core.errors import ConfigError, DataFileError
from auditor.core.options import near
from auditor.core.reading import Where, checked, load_fields
from auditor.core.reading import place as place_of
from auditor.core.shown import keep_secret, keep_secrets_of_url

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
