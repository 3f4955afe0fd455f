"""``http:FILE.yaml``: a model of rows behind a server; the file says how a row is sent and where the decision stands.

::

    url: https://scoring.example/decide
    headers: {Authorization: "Bearer ${SCORING_TOKEN}"}   # taken from the environment, never written down
    request: {applicant: $row}        # the JSON body; $row is the row as {column: value}
    answer: result.decision           # names and positions on the way to the decision
    timeout: 30                       # seconds

With ``$rows`` in place of ``$row`` several rows go in one request (``batch: 50``), and ``answer`` has one ``[*]``
(``predictions[*].label``): one decision a row, in order. Each row counts as one call.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from auditor.core import secrets, yamlfile
from auditor.core.counting import plural
from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ConfigError,
    DataFileError,
    RateLimited,
    ServerFault,
)
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Answer, Prompt, Request, digest
from auditor.models import bounded
from auditor.models.openai_wire import retry_after
from auditor.models.scalar import scalar

KEYS = ("url", "headers", "request", "answer", "timeout", "batch", "deterministic")
ROW, ROWS = "$row", "$rows"
EACH = "*"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_STATUS: Mapping[int, type[CallError]] = {
    401: AuthFailed,
    402: AuthFailed,
    403: AuthFailed,
    404: AuthFailed,  # the same for every row, so the run stops
    405: AuthFailed,
    407: AuthFailed,
    408: CallTimeout,
    425: ServerFault,
    429: RateLimited,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TableServer:
    """What the file says.

    Parameters
    ----------
    url : str
        Where rows are posted.
    answer : tuple of str or int
        The way to the decision; ``"*"`` stands for "each row".
    request : object
        The JSON body with ``$row`` or ``$rows`` in it.
    headers : mapping
        Values may name variables of the environment: ``${NAME}``.
    timeout : float
        Seconds that one request may take.
    batch : int
        Rows in one request at most; 1 with ``$row``.
    deterministic : bool
        Whether the same row always gets the same decision: declared in the file, never inferred.
    """

    url: str
    answer: tuple[str | int, ...]
    request: Any = ROW
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout: float = 30.0
    batch: int = 1
    deterministic: bool = False

    def header_values(self) -> dict[str, str]:
        """The headers with their variables filled in.

        Raises
        ------
        ConfigError
            A variable is not set, or its value cannot stand in a header; the value is never shown.
        """
        result = {}
        for name, text in self.headers.items():
            for variable in _VARIABLE.findall(text):
                if variable not in os.environ:
                    raise ConfigError(
                        f"the header {name} needs the environment variable {variable}, which is not set: "
                        f"export {variable}=…"
                    )
                secrets.know(os.environ[variable])
            value = _VARIABLE.sub(lambda found: os.environ[found[1]], text)
            if not value.isascii() or not value.isprintable():
                raise ConfigError(f"the header {name} holds characters that cannot be sent in a header")
            result[name] = value
        return result


def read_server(path: str | Path) -> TableServer:
    """Read the file of an ``http:`` model.

    Raises
    ------
    DataFileError
        It cannot be read or is not in the form above; the field is named.
    """
    value = yamlfile.load(path)
    if not isinstance(value, dict):
        raise DataFileError(f"{path}: expected fields such as url, request and answer")
    if unknown := sorted(set(map(str, value)) - set(KEYS)):
        raise DataFileError(f"{path}: unknown field {unknown[0]!r}; fields: {', '.join(KEYS)}")
    url, answer = value.get("url"), value.get("answer")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise DataFileError(f"{path}: url must begin with http:// or https://; got {url!r}")
    if not isinstance(answer, str | int) or answer == "":
        raise DataFileError(f"{path}: answer says where the decision stands, e.g. `answer: result.decision`")
    secrets.of_url(url)
    request, way = value.get("request", ROW), path_of(str(answer))
    one, many = _holds(request, ROW), _holds(request, ROWS)
    if one == many:
        raise DataFileError(f"{path}: request must hold either $row (one row) or $rows (a list of rows)")
    if many != (way.count(EACH) == 1) or way.count(EACH) > 1:
        raise DataFileError(
            f"{path}: answer has one [*], e.g. predictions[*].label, if and only if request holds $rows"
        )
    headers = value.get("headers") or {}
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        raise DataFileError(f"{path}: headers must be texts by name (quote numbers)")
    timeout, batch = value.get("timeout", 30), value.get("batch", 50 if many else 1)
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
        raise DataFileError(f"{path}: timeout must be a number of seconds above 0; got {timeout!r}")
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1 or (one and batch > 1):
        raise DataFileError(
            f"{path}: batch must be a whole number from 1, and 1 where request holds $row; got {batch!r}"
        )
    steady = value.get("deterministic", False)
    if not isinstance(steady, bool):
        raise DataFileError(f"{path}: deterministic must be true or false; got {steady!r}")
    return TableServer(
        url=url,
        answer=way,
        request=request,
        headers={str(k): v for k, v in headers.items()},
        timeout=float(timeout),
        batch=batch,
        deterministic=steady,
    )


def path_of(text: str) -> tuple[str | int, ...]:
    """A way through JSON: names between dots, positions as numbers or in brackets.

    Examples
    --------
    >>> path_of("result.items[0].label"), path_of("predictions[*]")
    (('result', 'items', 0, 'label'), ('predictions', '*'))
    """
    parts = [part for part in re.split(r"[.\[\]]+", text.removeprefix("$")) if part]
    return tuple(int(part) if part.isdigit() else part for part in parts)


def found_at(value: Any, way: Sequence[str | int]) -> Any:
    """What stands at the end of a way; with ``"*"`` a list.

    Raises
    ------
    BadResponse
        There is nothing; the step is named.

    Examples
    --------
    >>> found_at({"predictions": [{"label": 1}, {"label": 0}]}, ("predictions", "*", "label"))
    [1, 0]
    """
    for at, step in enumerate(way):
        if step == EACH:
            if not isinstance(value, list):
                raise BadResponse(f"the answer has no list at {_spelled(way[:at])}")
            return [found_at(item, way[at + 1 :]) for item in value]
        if isinstance(value, Mapping) and str(step) in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            names = f"; there: {', '.join(list(map(str, value))[:8])}" if isinstance(value, Mapping) else ""
            raise BadResponse(f"the answer has nothing at {_spelled(way[: at + 1])}{names}")
    return value


def _spelled(way: Sequence[str | int]) -> str:
    return ".".join(map(str, way)) or "its top"


def _holds(template: Any, word: str) -> bool:
    if isinstance(template, dict):
        return any(_holds(v, word) for v in template.values())
    if isinstance(template, list):
        return any(_holds(v, word) for v in template)
    return bool(template == word)


def _filled(template: Any, rows: Sequence[Any]) -> Any:
    if isinstance(template, dict):
        return {k: _filled(v, rows) for k, v in template.items()}
    if isinstance(template, list):
        return [_filled(v, rows) for v in template]
    return rows[0] if template == ROW else list(rows) if template == ROWS else template


def row_json(columns: Sequence[str], row: Sequence[Any]) -> str:
    """A row as a JSON object; whole numbers without a decimal point, null where a value is missing.

    Examples
    --------
    >>> row_json(["age", "sex"], [31.0, "Female"])
    '{"age": 31, "sex": "Female"}'
    """
    values = {name: scalar(v) for name, v in zip(columns, row, strict=True)}
    return json.dumps(values, ensure_ascii=False)


class RowDecision:
    """What stands in for a task where the server itself decides: any label it returns is one."""

    name = "http"
    kind = "decision"
    labels = ("any",)
    formats: tuple[str, ...] = ()
    default_format = "bare"
    sha256 = ""

    def bare(self, text: str) -> Prompt:
        """The row as it is sent."""
        return Prompt(format="bare", text=text)

    def render(self, text: str, format: str) -> Prompt:
        """As `bare`; there are no formats."""
        return self.bare(text)

    def read(self, output: str, style: str, format: str = "bare") -> Answer:
        """The decision as the label."""
        if not output.strip():
            return Answer(status="unparsed", reason="an empty decision")
        return Answer(status="ok", value=output)


class TableHTTP(Model):
    """Asks a server about rows; each request's text is one row as JSON.

    Parameters
    ----------
    name : str
        The spec.
    server : TableServer
        What its file says.

    Raises
    ------
    ConfigError
        A header names a variable that is not set.
    """

    costs: ClassVar[Costs] = "unseen"

    def __init__(self, name: str, server: TableServer) -> None:
        self.name, self._file = name, server
        self.deterministic, self.max_batch = server.deterministic, server.batch
        self._headers = server.header_values()
        self.fingerprint = "http:" + digest(
            [server.url, server.request, list(server.answer), sorted(server.headers)], size=16
        )
        self._client: Any = None
        self._worked = False

    def __repr__(self) -> str:
        return f"TableHTTP({self.name!r})"

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """One decision or error for each row."""
        import httpx

        if self._client is None:
            self._client = bounded.client(timeout=self._file.timeout, headers=self._headers)
        rows = [json.loads(request.prompt.text or "null") for request in batch]
        try:
            response = await self._client.post(self._file.url, json=_filled(self._file.request, rows))
        except CallError as error:
            return [error for _ in batch]
        except httpx.TimeoutException:
            return [CallTimeout(f"no answer within {self._file.timeout:g} s") for _ in batch]
        except httpx.HTTPError as error:
            return [ServerFault(f"{type(error).__name__}: no connection") for _ in batch]
        if not response.is_success:
            return [self._refused(response) for _ in batch]
        try:
            replies = self._read(response.json(), len(batch))
        except ValueError:
            return [self._unreadable("the answer is not JSON") for _ in batch]
        except BadResponse as error:
            return [self._unreadable(str(error)) for _ in batch]
        self._worked = True
        return replies

    def _unreadable(self, what: str) -> CallError:
        """Where no answer could be read so far, the file is wrong, so the run stops."""
        return BadResponse(what) if self._worked else AuthFailed(f"{what}. Is the file of {self.name} right?")

    def _read(self, value: Any, n: int) -> list[Reply | CallError]:
        found = found_at(value, self._file.answer)
        answers = found if EACH in self._file.answer else [found]
        if len(answers) != n:
            raise BadResponse(f"{len(answers)} decisions for {plural(n, 'row')}")
        return [_reply(answer) for answer in answers]

    def _refused(self, response: Any) -> CallError:
        status = int(response.status_code)
        kind = _STATUS.get(status, ServerFault if status >= 500 else BadRequest)
        wait = retry_after(response.headers) if kind in (RateLimited, ServerFault) else None
        return kind(f"HTTP status {status}", retry_after_s=wait)

    async def aclose(self) -> None:
        """Release the connections."""
        client, self._client = self._client, None
        if client is not None:
            await asyncio.shield(client.aclose())


def _reply(answer: Any) -> Reply | CallError:
    if answer is None or isinstance(answer, list | dict):
        return BadResponse("the decision is not a text, a number, or true or false")
    return Reply(text=str(answer).lower() if isinstance(answer, bool) else str(answer))
