"""A server on the loopback interface that keeps what it is sent and answers as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Replies = Callable[[Any], tuple[int, dict[str, str], Any]]  # body → status, headers, JSON (or bytes)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # the five of the standard library refuse some of sixteen calls at once


class JsonServer:
    """``seen`` has method, path, headers (names in lower case) and body of each request."""

    def __init__(self, reply: Replies = lambda body: (200, {}, {})) -> None:
        self.reply, self.seen = reply, list[tuple[str, str, dict[str, str], Any]]()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                body = json.loads(raw) if raw else None
                named = {k.lower(): v for k, v in self.headers.items()}
                outer.seen.append((self.command, self.path, named, body))
                status, headers, value = outer.reply(body)
                out = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                told = {"content-type": "application/json"} | headers | {"content-length": str(len(out))}
                for name, text in told.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(out)

            do_POST = do_GET = do_PUT = answer

            def log_message(self, *args: Any) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
