"""The OpenAI protocol: which server is asked with which key, whether it is Azure's, and what servers answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from auditor.core import reading
from auditor.core.errors import BadResponse, CallError, ConfigError, ContentFiltered, DataFileError
from auditor.core.protocols import Reply
from auditor.core.reading import from_json
from auditor.core.shown import HIDDEN, hidden, keep_secret, keep_secrets_of_url
from auditor.core.talk import written
from auditor.models.adapter import usage
from auditor.models.transport import DETAIL, said

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
