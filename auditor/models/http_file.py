"""The file behind ``http:FILE.yaml``: read, checked, with the line of what is wrong.

::

    format: 1
    url: https://service.example.org/v1/answer
    headers:
      Authorization: Bearer ${SERVICE_KEY}
    request:
      messages: "{{messages}}"
      max_tokens: "{{max_tokens}}"
    answer: choices[0].message.content

``${NAME}`` is taken from the environment, in the URL, headers and query. A placeholder that stands alone in a text
becomes its JSON value; inside a longer text it is put in as text; the body is written as JSON after that, so that
nothing in a tested text can change the request's structure.

A service that decides on rows of a table is sent ``{{row}}``, or several at once as ``{{rows}}``; ``answer`` then has
one ``[*]`` (``predictions[*].label``): one decision a row, in order.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from auditor.core import reading, secrets
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.reading import Where
from auditor.models.budget import Price
from auditor.models.json_places import EACH, HOLE, Steps, follow, parse_path

LARGEST = 256 * 1024  # bytes of such a file
PLACEHOLDERS = ("input", "prompt", "messages", "system", "max_tokens", "temperature")
OF_ROWS = ("row", "rows")
ROWS_AT_ONCE = 50
KEYS = (
    "format", "name", "url", "method", "headers", "query", "request", "timeout_s", "deterministic", "answer",
    "scores", "usage", "model", "error", "price", "max_tokens", "batch",
)  # fmt: skip
METHODS = ("POST", "PUT", "PATCH", "GET")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)
_WHAT: Mapping[type[object], str] = {
    str: "a text", dict: "a mapping", float: "a number", bool: "true or false", int: "a whole number",
}  # fmt: skip

EXAMPLE = """For a chat service it reads:
    format: 1
    url: https://service.example.org/v1/answer
    headers: {Authorization: "Bearer ${SERVICE_KEY}"}   # from the environment
    request: {messages: "{{messages}}", max_tokens: "{{max_tokens}}"}
    answer: choices[0].message.content                  # where the reply holds the answer"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Template:
    """A checked file.

    ``url``, ``headers`` and ``query`` still hold ``${NAME}``; ``fill`` puts in the values. ``style`` is "text"
    where the request holds ``{{input}}`` or rows, else "chat". ``batch`` is how many rows go in one request. ``paths``
    lead to answer, scores, tokens_in, tokens_out, model and error.
    """

    path: str
    name: str | None
    url: str
    method: str
    headers: Mapping[str, str]
    query: Mapping[str, object]
    request: Any
    timeout_s: float
    deterministic: bool
    paths: Mapping[str, Steps]
    price: Price | None
    max_tokens: int | None
    style: Literal["text", "chat"]
    batch: int
    variables: Mapping[str, str] = field(repr=False)

    @property
    def secrets(self) -> list[str]:
        """Values from the environment that no message may hold, longest first."""
        return sorted((v for v in self.variables.values() if len(v) >= 4), key=lambda v: (-len(v), v))

    def fill(self, text: str) -> str:
        """``text`` with the values of its ``${NAME}``."""
        return _VARIABLE.sub(lambda match: self.variables[match.group(1)], text)

    def at(self, name: str, value: object) -> object:
        """What an answer holds at one of the paths; None where it, or the path, is not there."""
        return follow(value, self.paths.get(name))

    def facts(self) -> dict[str, object]:
        """What shapes the answers: names of variables, never their values, beside the host that is asked."""
        host = urlsplit(self.fill(self.url))
        return {
            "host": f"{host.hostname}:{host.port}",
            "url": re.sub(r"//[^/@]*@", "//", self.url),
            "method": self.method,
            "headers": {
                name: value if "${" not in value else _VARIABLE.findall(value)
                for name, value in sorted(self.headers.items())
            },
            "query": self.query,
            "request": self.request,
            "paths": [self.paths.get("answer"), self.paths.get("scores")],
        }


def read(file: str, *, rows: bool = False) -> Template:
    """Read and check a file; ``rows``: of a service that decides on rows.

    Raises `DataFileError`, with file and line, and `ConfigError` where an environment variable is not set.
    """
    return _Reader(file, rows).template()


class _Reader:
    """Reads one file; every complaint names file and line."""

    def __init__(self, file: str, rows: bool) -> None:
        self.file, self.rows = file, rows
        self.variables: dict[str, str] = {}
        value, self.lines = reading.read_yaml(Path(file), largest=LARGEST, missing=f" {EXAMPLE}")
        if not isinstance(value, dict):
            raise DataFileError(f"{file}: a mapping with url, request and answer is needed")
        self.raw: dict[str, object] = value

    def fail(self, where: Where | str, text: str) -> DataFileError:
        where = (where,) if isinstance(where, str) else where
        line = next((n for i in range(len(where), 0, -1) if (n := self.lines.get(where[:i]))), None)
        return DataFileError(f"{Path(self.file)}{'' if line is None else f', line {line}'}: {text}")

    def template(self) -> Template:
        raw = self.raw
        self.known(raw, KEYS)
        if raw.get("format") != 1:
            raise self.fail("format", f"format must be 1; got {_brief(raw.get('format'))}")
        if "url" not in raw:
            raise self.fail((), "the field url is missing")
        if "answer" not in raw and "scores" not in raw:
            raise self.fail((), "the field answer (or scores) is missing: where the reply holds the model's answer")
        url = self.expect("url", str, "")
        method = self.expect("method", str, "POST").upper()
        if method not in METHODS:
            raise self.fail("method", f"method must be one of {', '.join(METHODS)}; got {method}")
        self.note_variables(url, ("url",))
        headers = self.headers()
        query = self.text_map("query")
        request = raw.get("request")
        if method == "GET" and request is not None:
            raise self.fail("request", "a GET request has no body; put the text into query")
        usage = self.expect("usage", dict, {})
        self.known(usage, ("tokens_in", "tokens_out"), ("usage",))
        timeout_s = self.expect("timeout_s", float, 60.0)
        if not 0 < timeout_s <= 3600:
            raise self.fail("timeout_s", f"timeout_s must be between 0 and 3600 seconds; got {timeout_s:g}")
        used = self.placeholders(request, query)
        name, deterministic = self.expect("name", str, None), self.expect("deterministic", bool, False)
        paths = dict(self.path_at(raw, key) for key in ("answer", "scores", "model", "error") if key in raw)
        paths |= dict(self.path_at(usage, key, ("usage",)) for key in usage)
        template = Template(
            path=self.file,
            name=name,
            url=url,
            method=method,
            headers=headers,
            query=query,
            request=request,
            timeout_s=timeout_s,
            deterministic=deterministic,
            paths=paths,
            price=self.price(),
            max_tokens=self.expect("max_tokens", int, None),
            style="text" if self.rows else self.style(used),
            batch=self.batch(used, paths.get("answer", ())) if self.rows else 1,
            variables=self.variables,
        )
        secrets.of_url(template.fill(url))
        parts = urlsplit(template.fill(url))
        if parts.scheme not in ("http", "https") or not parts.hostname or "{{" in url:
            raise self.fail("url", "url must start with http:// or https://, name a host, and hold no {{…}}")
        return template

    def expect(self, key: str, kind: type[object], default: object) -> Any:
        if key not in self.raw:
            return default
        value = self.raw[key]
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.fail(key, f"{key} must be {_WHAT[kind]}; got {_brief(value)}")
        return value

    def known(self, raw: Mapping[str, object], keys: tuple[str, ...], where: Where = ()) -> None:
        for key in raw:
            if key not in keys:
                near = difflib.get_close_matches(str(key), keys, n=1)
                hint = f" Did you mean {near[0]}?" if near else f" Known: {', '.join(keys)}."
                raise self.fail((*where, str(key)), f"unknown field {str(key)!r}.{hint}")

    def note_variables(self, text: str, where: Where) -> None:
        for name in _VARIABLE.findall(text):
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise self.fail(where, f"${{{name}}} is no name of an environment variable")
            value = os.environ.get(name)
            if value is None or not value.strip():
                message = str(self.fail(where, f"the environment variable {name} is not set."))
                raise ConfigError(message, below=f"Run: export {name}=…")
            if not (value.isascii() and value.isprintable()):
                raise self.fail(where, f"the value of {name} holds characters that no HTTP header can carry")
            self.variables[name] = value.strip()
            secrets.know(value)

    def text_map(self, key: str) -> dict[str, object]:
        value: dict[str, object] = self.expect(key, dict, {})
        for name, item in value.items():
            if not isinstance(name, str) or isinstance(item, bool) or not isinstance(item, str | int | float):
                raise self.fail((key, str(name)), f"{key}: {name!r} must be a text; got {_brief(item)}")
            if isinstance(item, str):
                self.note_variables(item, (key, name))
        return value

    def path_at(self, raw: Mapping[str, object], key: str, where: Where = ()) -> tuple[str, Steps]:
        value = raw[key]
        if not isinstance(value, str):
            raise self.fail((*where, key), f"{key} is a path such as choices[0].message.content; got {_brief(value)}")
        try:
            return key, parse_path(value)
        except ValueError as error:
            raise self.fail((*where, key), f"{key}: {error}") from None

    def headers(self) -> dict[str, str]:
        headers = {name: str(value) for name, value in self.text_map("headers").items()}
        for name, value in headers.items():
            where = ("headers", name)
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name):
                raise self.fail(where, f"{name!r} is no name of a header")
            if not (value.isascii() and value.isprintable()) or "{{" in value:
                raise self.fail(where, f"the value of {name} must be plain ASCII without {{{{…}}}}")
            if _SECRET_HEADER.search(name) and "${" not in value:
                hint = f"write {name}: ${{NAME}} and export NAME=…"
                raise self.fail(where, f"a secret does not belong into a file: {hint}")
        return headers

    def price(self) -> Price | None:
        if "price" not in self.raw:
            return None
        price = self.expect("price", dict, {})
        names = ("input_usd", "output_usd")
        self.known(price, names, ("price",))
        numbers = [price.get(name) for name in names]
        if not all(isinstance(n, int | float) and not isinstance(n, bool) and n >= 0 for n in numbers):
            raise self.fail("price", "price needs input_usd and output_usd, in USD per million tokens")
        return Price(input_usd=float(price["input_usd"]), output_usd=float(price["output_usd"]))

    def placeholders(self, request: object, query: Mapping[str, object]) -> set[str]:
        """Check the placeholders, and name them."""
        used: set[str] = set()
        allowed = OF_ROWS if self.rows else PLACEHOLDERS
        for where, text in _texts({"request": request, "query": query}, ()):
            for name in HOLE.findall(text):
                if name not in allowed:
                    near = difflib.get_close_matches(name, allowed, n=1)
                    hint = f" Did you mean {{{{{near[0]}}}}}?" if near else ""
                    raise self.fail(where, f"unknown placeholder {{{{{name}}}}}.{hint}")
                if name in ("messages", *OF_ROWS) and (not HOLE.fullmatch(text.strip()) or where[0] == "query"):
                    raise self.fail(where, f"{{{{{name}}}}} is no text: it must be the whole value, in request")
                used.add(name)
        if self.rows and len(used) != 1:
            raise self.fail("request", "request must hold either {{row}} (one row) or {{rows}} (a list of rows)")
        return used

    def batch(self, used: set[str], answer: Steps) -> int:
        """How many rows go in one request."""
        many = "rows" in used
        if answer.count(EACH) != many:
            hint = "answer has one [*], e.g. predictions[*].label, if and only if request holds {{rows}}"
            raise self.fail("answer", hint)
        batch: int = self.expect("batch", int, ROWS_AT_ONCE if many else 1)
        if batch < 1 or (batch > 1 and not many):
            raise self.fail("batch", f"batch must be at least 1, and 1 where request holds {{{{row}}}}; got {batch}")
        return batch

    def style(self, used: set[str]) -> Literal["text", "chat"]:
        """Which input the placeholders want."""
        texts = used & {"input", "prompt", "messages"}
        if not texts:
            raise self.fail("request", "request must hold {{messages}}, {{prompt}} or {{input}}")
        if "input" in texts and used & {"prompt", "messages", "system"}:
            raise self.fail(
                "request",
                "{{input}} is the bare text, for a service with a prompt of its own; it does not go with {{prompt}}, "
                "{{messages}} or {{system}}",
            )
        return "text" if "input" in texts else "chat"


def _texts(value: object, where: Where) -> Iterator[tuple[Where, str]]:
    """Every text in ``value`` that is no key, with its place."""
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*where, str(key)))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _texts(item, (*where, i))


def _brief(value: object) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {str(value)[:40]!r}"
