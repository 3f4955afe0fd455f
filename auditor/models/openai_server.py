"""Which server is asked behind ``openai:``, with which key, and whether it is one of Azure's."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from auditor.core import secrets, userfile
from auditor.core.decoded import from_json
from auditor.core.errors import ConfigError, DataFileError

PROVIDER = "https://api.openai.com/v1"
AZURE_HOSTS = (".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com")


def place(url: str) -> tuple[str, str]:
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


def address(given: str | None, api_key: str | None) -> str:
    """The URL to ask; see the module for the order."""
    url = given or os.environ.get("OPENAI_BASE_URL")
    if not url and not (api_key or os.environ.get("OPENAI_API_KEY")):
        url = os.environ.get("AZURE_OPENAI_ENDPOINT")
    return revealed(url or PROVIDER)


def revealed(url: str) -> str:
    """``url`` as it is asked; of one that was written down without its secrets the whole is in the environment.

    Raises
    ------
    ConfigError
        It is not.
    """
    url = url.strip().rstrip("/")
    if secrets.MARK in url:
        for name in ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"):
            whole = os.environ.get(name, "").strip().rstrip("/")
            if whole and secrets.hidden(whole) == url:
                return revealed(whole)
        raise ConfigError(
            f"the address {url} had a password or a key in it, which is written down nowhere.",
            below="Run: export OPENAI_BASE_URL=… (the whole address)",
        )
    secrets.of_url(url)
    return url


def azure_version(url: str, host: str, given: str | None) -> str | None:
    """Azure's API version where the server is one of Azure's; None elsewhere."""
    endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT", "").strip().rstrip("/")
    if url.endswith("/v1") or not (url == endpoint or host.endswith(AZURE_HOSTS)):
        return None
    version = given or os.environ.get("OPENAI_API_VERSION") or os.environ.get("AZURE_OPENAI_API_VERSION")
    if not version:
        raise ConfigError(
            f"{host} is Azure, which needs a version of its API.",
            below="Run: export OPENAI_API_VERSION=2024-10-21 (or give the address that ends in /openai/v1)",
        )
    return version


def unreachable(url: str, *, given: bool) -> str:
    """What to look at where ``url`` does not answer: what named it, or the network where nothing did."""
    variables = ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT")
    named = [v for v in variables if os.environ.get(v, "").strip().rstrip("/") == url]
    if given or named:
        return f"Is the server running? Check {'--base-url' if given else named[0]}"
    return (
        "Check this machine's network and its proxy (HTTPS_PROXY). No --base-url was given, so the provider is asked; "
        "for a server of your own: --base-url URL"
    )


OWN = "(or --base-url URL for a server of your own)"
BY_ENTRA = "AZURE_OPENAI_AD_TOKEN"  # of Microsoft Entra ID, which lasts an hour or so


def key_name(host: str, azure: str | None, *, given: str | None) -> str:
    """The variable that the key is in: one of Azure's where the server is Azure's and it is set."""
    at_azure = azure is not None or host.endswith(AZURE_HOSTS)
    if not at_azure or given:
        return "OPENAI_API_KEY"
    for name in ("AZURE_OPENAI_API_KEY", BY_ENTRA, "OPENAI_API_KEY"):
        if os.environ.get(name):
            return name
    return "AZURE_OPENAI_API_KEY"


def checked_key(key: str, name: str, *, needed: bool, variable: str) -> str:
    """``key`` without spaces around it; refused where one is needed or no header can carry it."""
    key = key.strip()
    if not key and needed:
        raise ConfigError(
            f"{name} needs a key.",
            below=f"Run: export {variable}=… "
            + (f"(or {BY_ENTRA}=…, a token of Entra ID)" if variable.startswith("AZURE") else OWN),
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"{variable} holds characters that no HTTP header can carry; set it again")
    secrets.know(key)
    return key


def secret_headers(given: Sequence[str]) -> dict[str, str]:
    """Headers of ``NAME=VARIABLE``, their values from the environment."""
    headers: dict[str, str] = {}
    for one in given:
        name, _, variable = (part.strip() for part in one.partition("="))
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or not variable:
            raise ConfigError(
                f"--header takes NAME=VARIABLE, the name of a header and of the environment variable that holds its "
                f"value, for example X-Api-Key=GATEWAY_KEY; got {one!r}"
            )
        if not os.environ.get(variable):
            raise ConfigError(f"--header {one}: {variable} is not set. Run: export {variable}=…")
        headers[name] = checked_key(os.environ[variable], name, needed=True, variable=variable)
    return headers


def json_object(given: str | Path | Mapping[str, object] | None, flag: str) -> dict[str, object]:
    """The JSON object in a file, or as it is given; empty without one."""
    if given is None or isinstance(given, Mapping):
        return dict(given or {})
    try:
        value = from_json(userfile.text(given))
    except OSError as error:
        raise DataFileError(f"{flag}: {given}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise DataFileError(f"{flag}: {given}: this is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataFileError(f'{flag}: {given}: expected one JSON object, such as {{"top_p": 0.9}}')
    return value
