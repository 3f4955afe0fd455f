"""Chat models behind the OpenAI protocol: the provider itself, Azure, and every compatible server.

The server is, in this order, the one given, ``OPENAI_BASE_URL``, ``AZURE_OPENAI_ENDPOINT`` (where ``OPENAI_API_KEY`` is
not set), the provider. It is asked as Azure where it is ``AZURE_OPENAI_ENDPOINT`` or its host is one of Azure's, unless
the path ends in ``/v1``: there Azure speaks the plain
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from auditor.core import reading
from auditor.core.errors import (
    AuthFailed,
    BadRequest,
    BadResponse,
    CallError,
    CallTimeout,
    ConfigError,
    ContentFiltered,
    DataFileError,
    ParameterChanged,
    ServerFault,
)
from auditor.core.protocols import Model, Reply
from auditor.core.reading import from_json
from auditor.core.shown import HIDDEN, hidden, keep_secret, keep_secrets_of_url
from auditor.core.talk import written
from auditor.core.types import Request, digest
from auditor.models import transport
from auditor.models.adapter import ALTERNATIVES, can_score, read_tokens, token_limits, usage
from auditor.models.adapter import scores as label_scores
from auditor.models.limits import Price, lookup
from auditor.models.transport import DETAIL, said

if TYPE_CHECKING:
    from openai import AsyncOpenAI

FEWER_ALTERNATIVES = 5  # the most that some other servers give
REASONING_TOKENS = 4096  # models that think before they answer spend tokens of the same allowance
WHOLE = "request"  # the format of a prompt that is a whole request, as JSON
_LIMITS = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_LEFT_OUT = "left out"
_LOGPROBS = ("logprobs", "top_logprobs")
_REASONING = re.compile(r"(o\d|gpt-[5-9])(?!.*-chat)")
PROVIDER = "https://api.openai.com/v1"
AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")
ADDRESSES = ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT")
BY_ENTRA = "AZURE_OPENAI_AD_TOKEN"  # of Microsoft Entra ID, which lasts an hour or so
THINK = "<think>"  # opens what is no answer; never closed where nothing but reasoning came
_REASONING_PARTS = frozenset({"reasoning", "thinking", "redacted_thinking"})
_UNSUPPORTED = re.compile(
    r"unsupported|not (?:be )?support|unrecogni[sz]ed|unknown|unexpected|extra[ _](?:inputs|fields|forbidden)"
    r"|not permitted|not allowed|only the default",
    re.IGNORECASE,
)


class OpenAIChat(Model):
    """One chat model of an OpenAI-compatible server.

    The reply is the text of the first choice, or the refusal that the model wrote. ``task`` gives the temperature, and
    for each prompt format the most tokens of an answer (else 256). ``temperature`` "server" sends none. ``extra_body``
    holds further fields of every request, or names the JSON file that does; ``headers`` are ``NAME=VARIABLE``, with
    values from the environment that are never written. ``timeout_s`` is for one whole call: a server that drips bytes
    does not extend it. Without ``api_key`` a key comes from the environment; a server given by URL needs none.

    ``logprobs`` asks for log-probabilities, and so for scores of the task's labels; None: where the task has labels,
    and for fewer or none from the first refusal on. ``changed`` names parameters that the server refused as
    unsupported, and how they are sent now; those that the user asked for stay.
    """

    style: Literal["text", "chat"] = "chat"
    calls_tools = True

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        task: Any = None,
        max_tokens: int | None = None,
        temperature: float | Literal["task", "server"] = "task",
        timeout_s: float = 60.0,
        price: Price | None = None,
        api_key: str | None = None,
        logprobs: bool | None = None,
        reasoning_effort: str | None = None,
        extra_body: str | Path | Mapping[str, object] | None = None,
        headers: Sequence[str] = (),
    ) -> None:
        if not name:
            raise ConfigError("openai: names no model. Write --model openai:NAME, for example openai:gpt-4o-mini")
        self.name = f"openai:{name}"
        self.model = name
        url = address(base_url, api_key)
        self._url, (self._host, self.server) = url, place(url)
        self.proxy = transport.proxy_of(url)
        self._advice = unreachable(url, named=bool(base_url))
        at_provider = self._host == urlsplit(PROVIDER).hostname
        self._azure = azure_version(url, self._host)
        self._key_name = key_name(self._host, self._azure, api_key)
        key, needed = api_key or os.environ.get(self._key_name, ""), at_provider or self._azure is not None
        self._key = checked_key(key, self.name, needed=needed, variable=self._key_name)
        self._limits = token_limits(task, max_tokens)
        self._own_temperature = temperature != "task"
        self._own_limit = max_tokens is not None
        if temperature == "task":
            temperature = getattr(task, "temperature", 0.0)
        self._limit_name = "max_tokens"
        self.changed: dict[str, str] = {}
        self._params: dict[str, Any] = {}
        # Those that think refuse any temperature, and know the limit only under its newer name.
        thinks = at_provider and _REASONING.match(name) is not None
        if thinks:
            self._rename_limit()
        if temperature != "server" and (self._own_temperature or not thinks):
            self._params["temperature"] = temperature
        if reasoning_effort is not None:
            self._params["reasoning_effort"] = reasoning_effort
        self._extra = json_object(extra_body, "--server extra-body")
        self._headers = secret_headers(headers)
        self._task = task
        self._own_logprobs, self._logprobs_came = logprobs is True, False
        if logprobs or (logprobs is None and not thinks and can_score(task)):
            self._params |= {"logprobs": True, "top_logprobs": ALTERNATIVES}
        self.price = price or lookup(name, self._host)
        facts = {"server": self.server, "model": name, "params": self._params, "limits": self._limits}
        rest = {"api_version": self._azure, "extra_body": self._extra, "headers": sorted(headers)}
        facts |= {name: value for name, value in rest.items() if value}
        self.fingerprint = "openai:" + digest(facts, size=16)
        self._timeout_s = timeout_s
        self._client: AsyncOpenAI | None = None

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
        if self._client is not None:
            return self._client
        from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAsyncHttpxClient

        key = self._key or "no-key"
        shared: dict[str, Any] = {
            "http_client": transport.client(DefaultAsyncHttpxClient, timeout=self._timeout_s),
            "max_retries": 0,
            "timeout": self._timeout_s,
            "default_headers": self._headers,
        }
        if self._azure is None:
            parts = urlsplit(self._url)
            url, query = parts._replace(query="").geturl(), dict(parse_qsl(parts.query))
            self._client = AsyncOpenAI(base_url=url, api_key=key, default_query=query, **shared)
        else:
            keys: dict[str, Any] = {"azure_ad_token": key} if self._key_name == BY_ENTRA else {"api_key": key}
            self._client = AsyncAzureOpenAI(azure_endpoint=self._url, api_version=self._azure, **keys, **shared)
        return self._client

    def body(self, request: Request) -> dict[str, Any]:
        """Return the body of a request; a prompt that is a whole request keeps all but the model."""
        if request.prompt.format == WHOLE and request.prompt.text is not None:
            return {**json.loads(request.prompt.text), "model": self.model, **self._extra}
        if request.prompt.messages is None:
            messages: list[dict[str, object]] = [{"role": "user", "content": request.prompt.text or ""}]
        else:
            messages = [m.plain() for m in request.prompt.messages]
        limit = {self._limit_name: self.max_tokens(request.prompt.format)}
        tools = {"tools": [t.plain() for t in request.prompt.tools]} if request.prompt.tools else {}
        return {"model": self.model, "messages": messages, **tools, **self._params, **limit, **self._extra}

    async def _ask(self, request: Request) -> Reply | CallError:
        client = self._connect()
        from openai import OpenAIError

        sent = self.body(request)
        rest: dict[str, object] = {k: v for k, v in sent.items() if k not in ("model", "messages")}
        try:
            async with asyncio.timeout(self._timeout_s):
                raw = await client.chat.completions.with_raw_response.create(
                    model=sent["model"], messages=sent["messages"], extra_body=rest
                )
            transport.note(self, raw.headers)
            kind, tools = raw.headers.get("content-type"), bool(request.prompt.tools)
            reply = read_completion(raw.content, kind, tools=tools)
            if rest.get("logprobs") and isinstance(reply, Reply):
                self._logprobs_came = True
                if self._task is not None and self._task.graded(request.prompt.format):
                    return reply
                tokens = read_tokens(raw.content)
                return reply._replace(scores=label_scores(self._task, tokens))
            return reply
        except TimeoutError:
            return CallTimeout(f"no whole answer from {self.server} within {self._timeout_s:g} s (--server timeout=N)")
        except UnicodeEncodeError:
            return BadRequest("the prompt holds a lone surrogate, which no JSON request can carry")
        except CallError as error:
            return error
        except OpenAIError as error:
            ours = self._translate(error)
            if type(ours) is BadRequest and self.changed_by(getattr(error, "body", None), rest):
                return ParameterChanged(str(ours))
            return ours

    def changed_by(self, body: object, sent: Mapping[str, object]) -> bool:
        """Return whether a parameter in ``sent`` that the server refused is sent otherwise from now on."""
        refused = unsupported(body, sent)
        # Refusals of these come in many words, and, where they never went through, in none.
        if not self._own_logprobs and ("logprob" in str(body) or not (refused or self._logprobs_came)):
            refused |= {"top_logprobs", "logprobs"} & sent.keys()
        for name in sorted(refused):
            if name in self._extra or sent[name] != self._params.get(name, sent[name]):
                continue
            if name in _LOGPROBS and name in self._params:
                self._fewer_logprobs(FEWER_ALTERNATIVES if "logprob" in str(body) else 0)
            elif name in self.changed:
                continue
            elif name == self._limit_name and _LIMITS[name] not in self.changed:
                self._rename_limit()
                self.changed[name] = f"sent as {self._limit_name}"
            elif name == "temperature" and not self._own_temperature:
                del self._params[name]
                self.changed[name] = _LEFT_OUT
        # Calls that were under way when it was changed were sent in the old form.
        now = {**self._params, **self._extra}
        return any(n in self.changed and n != self._limit_name and (n not in now or now[n] != sent[n]) for n in sent)

    def _fewer_logprobs(self, most: int) -> None:
        """Ask for fewer alternatives, then for none: some servers give five, some refuse the field."""
        if self._own_logprobs:
            return
        if self._params["top_logprobs"] > most > 0:
            self._params["top_logprobs"] = most
            self.changed["top_logprobs"] = f"sent as {most}"
        else:
            for name in _LOGPROBS:
                del self._params[name]
                self.changed[name] = _LEFT_OUT

    def _rename_limit(self) -> None:
        """Send the limit by its other name; models that know only the newer one think, and need room for that."""
        self._limit_name = _LIMITS[self._limit_name]
        if self._limit_name == "max_completion_tokens" and not self._own_limit:
            self._limits = {form: limit + REASONING_TOKENS for form, limit in self._limits.items()}

    def _translate(self, error: Exception) -> CallError:
        """Return our error for one of the SDK's, without keys, headers or the chain of causes."""
        if isinstance(error.__cause__, CallError):
            return error.__cause__  # of our own client (`auditor.models.transport`)
        kind, wait = transport.kind_of(error)
        response, status = getattr(error, "response", None), getattr(error, "status_code", None)
        if response is not None:
            transport.note(self, response.headers)
        text = transport.brief(said(getattr(error, "body", None)) or str(error))
        cause = error.__cause__ or error.__context__
        if isinstance(status, int):
            text = f"HTTP {status}: {text}"
        elif cause is not None:
            text += f" ({type(cause).__name__}: {str(cause)[:DETAIL]})"
        hint = ""
        if status == 404:
            hint = f". Check the model name {self.model!r} and --base-url; the path usually ends in /v1"
        elif kind in (ServerFault, CallTimeout) and status is None:
            hint = f". {self._advice}"
        elif kind is AuthFailed and self._key_name == BY_ENTRA:
            hint = f". The token in {BY_ENTRA} may have expired; fetch a new one and resume the run"
        elif kind is AuthFailed:
            hint = f". Check {self._key_name} and what it may use"
        return kind(f"{self.server}: {text}{hint}", retry_after_s=wait)


# -- which server is asked with which key, and what servers answer ----------------------------------------------------


def _variable(name: str) -> str:
    """Return an address in the environment."""
    return os.environ.get(name, "").strip().rstrip("/")


def place(url: str) -> tuple[str, str]:
    """Return host, and host with port and path: what may be shown and what identifies a server."""
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


def address(base_url: str | None, api_key: str | None) -> str:
    """Return the URL to ask: the one that was named, else of the environment, else the provider's."""
    url = base_url or os.environ.get("OPENAI_BASE_URL")
    if not url and not (api_key or os.environ.get("OPENAI_API_KEY")):
        url = os.environ.get("AZURE_OPENAI_ENDPOINT")
    return revealed(url or PROVIDER)


def revealed(url: str) -> str:
    """Return ``url`` as it is asked: one that was kept without its secrets is found in the environment."""
    url = url.strip().rstrip("/")
    if HIDDEN in url:
        for whole in map(_variable, ADDRESSES):
            if whole and hidden(whole) == url:
                return revealed(whole)
        raise ConfigError(
            f"the address {url} had a password or a key in it, which is written down nowhere.",
            below="Run: export OPENAI_BASE_URL=… (the whole address)",
        )
    keep_secrets_of_url(url)
    return url


def azure_version(url: str, host: str) -> str | None:
    """Return Azure's API version where the server is one of Azure's; None elsewhere."""
    if url.endswith("/v1") or not (url == _variable("AZURE_OPENAI_ENDPOINT") or host.endswith(AZURE_HOSTS)):
        return None
    version = os.environ.get("OPENAI_API_VERSION") or os.environ.get("AZURE_OPENAI_API_VERSION")
    if not version:
        raise ConfigError(
            f"{host} is Azure, which needs a version of its API.",
            below="Run: export OPENAI_API_VERSION=2024-10-21 (or give the address that ends in /openai/v1)",
        )
    return version


def unreachable(url: str, *, named: bool) -> str:
    """Say what to check where ``url`` does not answer."""
    sources = ["--base-url"] if named else [v for v in ADDRESSES if _variable(v) == url]
    if sources:
        return f"Is the server running? Check {sources[0]}"
    return (
        "Check this machine's network and its proxy (HTTPS_PROXY). No --base-url was given, so the provider is asked; "
        "for a server of your own: --base-url URL"
    )


def key_name(host: str, azure: str | None, api_key: str | None) -> str:
    """Return the variable of the key: one of Azure's where the server is Azure's and it is set."""
    if api_key or (azure is None and not host.endswith(AZURE_HOSTS)):
        return "OPENAI_API_KEY"
    names = ("AZURE_OPENAI_API_KEY", BY_ENTRA, "OPENAI_API_KEY")
    return next((name for name in names if os.environ.get(name)), names[0])


def checked_key(key: str, name: str, *, needed: bool, variable: str) -> str:
    """Return ``key`` stripped; raise `ConfigError` where one is needed or no header can carry it."""
    key = key.strip()
    if not key and needed:
        other = "(or --base-url URL for a server of your own)"
        if variable.startswith("AZURE"):
            other = f"(or {BY_ENTRA}=…, a token of Entra ID)"
        raise ConfigError(f"{name} needs a key.", below=f"Run: export {variable}=… {other}")
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{variable} holds characters that no HTTP header can carry; set it again")
    keep_secret(key)
    return key


def secret_headers(named: Sequence[str]) -> dict[str, str]:
    """Return headers of ``NAME=VARIABLE``, their values from the environment."""
    headers: dict[str, str] = {}
    for one in named:
        name, _, variable = (part.strip() for part in one.partition("="))
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not variable:
            raise ConfigError(
                f"--server header takes NAME=VARIABLE, the name of a header and of the environment variable that "
                f"holds its value, for example X-Api-Key=GATEWAY_KEY; got {one!r}"
            )
        if not os.environ.get(variable):
            raise ConfigError(f"--server header={one}: {variable} is not set. Run: export {variable}=…")
        headers[name] = checked_key(os.environ[variable], name, needed=True, variable=variable)
    return headers


def json_object(source: str | Path | Mapping[str, object] | None, flag: str) -> dict[str, object]:
    """Return the JSON object in a file, or the mapping itself; empty for None."""
    if source is None or isinstance(source, Mapping):
        return dict(source or {})
    try:
        value = from_json(reading.text(source))
    except OSError as error:
        raise DataFileError(f"{flag}: {source}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataFileError(f"{flag}: {source}: this is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataFileError(f'{flag}: {source}: expected one JSON object, such as {{"top_p": 0.9}}')
    return value


def read_completion(body: bytes, content_type: str | None, *, tools: bool = False) -> Reply | CallError:
    """Return the reply in the body of a chat completion, or the error in it.

    Where ``tools`` were offered, their calls are the answer, with the text (`auditor.core.talk`). The SDK hands out
    HTML as text and fields of the wrong type as they are, so it does not read the body.

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
        why = said(raw)[:DETAIL] if isinstance(raw, dict) else ""
        return BadResponse(f"the answer has no choices{': ' if why else ''}{why}")
    choice = choices[0]
    if choice.get("finish_reason") == "content_filter":
        return ContentFiltered("the provider's filter cut the answer (finish_reason content_filter)")
    message = choice.get("message")
    if not isinstance(message, dict):
        return BadResponse("the answer's first choice has no message")
    content = written(message) if tools and message.get("tool_calls") else _content(message)
    if content is None:
        return BadResponse("the answer's content is not a text")
    counts, reported = raw.get("usage"), raw.get("model")
    return Reply(
        content,
        usage=usage(counts.get("prompt_tokens"), counts.get("completion_tokens")) if isinstance(counts, dict) else None,
        model_reported=reported if isinstance(reported, str) else None,
        cut_off=choice.get("finish_reason") == "length",
    )


def _content(message: Mapping[str, object]) -> str | None:
    """Return the answer in a message; None for an unknown form.

    Without text, calls of tools are the answer, as JSON. Reasoning alone is returned marked: no label is read in it.
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
    """Return the text of a content that is a list of parts: texts and refusals, without reasoning."""
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
    """Return the parameters among ``sent`` that the body of an error calls unsupported.

    >>> body = {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}
    >>> unsupported(body, ["max_tokens", "temperature"])
    {'max_tokens'}
    """
    try:
        text = body if isinstance(body, str) else json.dumps(body)
    except (TypeError, ValueError, RecursionError):
        return set()
    text = text[:4000]
    if not _UNSUPPORTED.search(text):
        return set()
    return {name for name in sent if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
