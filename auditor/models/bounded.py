"""The HTTP client of models behind SDKs: bodies have an end, and a redirect stays where the user pointed."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from auditor.core.errors import AuthFailed, BadResponse

LARGEST = 16 * 1024 * 1024  # bytes of an answer that are read, after it was unpacked
LARGEST_FILE = 1024 * 1024 * 1024  # of a file with the answers of a batch
REDIRECTS = 5


class Elsewhere(AuthFailed):
    """The server points to another place: for every prompt, so the run stops."""


class TooLong(BadResponse):
    """The answer has no end, or was packed so that it hardly has one."""


def client(like: type[object] | None = None, **options: object) -> Any:
    """A client that reads at most `LARGEST` bytes and follows redirects within one origin only.

    Parameters
    ----------
    like : type or None
        A client class of the SDK that gets it: SDKs come with different packages of one interface. None: ``httpx``.
    **options
        Those of its ``AsyncClient``.
    """
    roots = (c.__module__.partition(".")[0] for c in (() if like is None else like.__mro__))
    package = importlib.import_module(next((r for r in roots if r.startswith("httpx")), "httpx"))
    # The SDK's own limits of connections do not hold: ours is the one.
    limits = package.Limits(max_connections=None, max_keepalive_connections=64)
    return _kind(package)(limits=limits, **options)


@cache
def _kind(package: Any) -> Any:
    class Bounded(package.AsyncClient):  # type: ignore[misc]
        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            options["follow_redirects"] = False
            for _ in range(REDIRECTS + 1):
                response = await super().send(request, stream=True, **options)
                following = response.next_request
                if following is None:
                    return response if stream else await _read(package, response)
                await response.aclose()
                if _origin(following.url) != _origin(request.url):
                    raise Elsewhere(
                        f"the server points to {following.url.host}, another place than the address that was given: "
                        "nothing was sent there"
                    )
                request = following
            raise Elsewhere(f"the server redirected more than {REDIRECTS} times")

    return Bounded


async def _read(package: Any, response: Any) -> Any:
    """``response`` with its body read, piece by piece, so that a packed one is not unpacked without end."""
    body = bytearray()
    most = LARGEST_FILE if response.request.url.path.endswith("/content") else LARGEST
    try:
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > most:
                raise TooLong(f"the answer is longer than {most} bytes")
    finally:
        await response.aclose()
    # As bytes, since a server may send what is no ASCII.
    kept = [(k, v) for k, v in response.headers.raw if k.lower() not in (b"content-encoding", b"content-length")]
    return package.Response(
        response.status_code,
        headers=kept,
        content=bytes(body),
        request=response.request,
        extensions=response.extensions,
    )


def _origin(url: Any) -> tuple[str, str, int]:
    port = url.port or {"http": 80, "https": 443}.get(url.scheme, 0)
    return url.scheme, url.host, port
