"""A server on the loopback with files, batches and chat completions, which can fail, wait or hold at any point."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from nursery import Quiet, Threaded, completion


class Provider(Threaded):
    """Files and batches; a batch is done after ``polls`` looks at it.

    ``hold`` names a point at which the next call is not answered: ``upload`` and ``create`` before and ``created`` after
    the server took note, ``look`` at a batch, ``content`` of a file. ``held`` is set once a call waits there; ``go``
    lets it end, without an answer.
    """

    def __init__(self, polls: int = 2) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.polls = polls
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.asked: Counter[str] = Counter()
        self.direct = 0  # requests outside batches
        self.looks: Counter[str] = Counter()
        self.outcome: Callable[[str, int], dict[str, Any] | None] = lambda text, _n: answered(f"{text}!")
        self.status = "completed"
        self.trouble: list[int] = []  # HTTP statuses of the next calls
        self.errors: list[dict[str, str]] = []
        self.hold = ""
        self.skip = 0  # calls at the point of ``hold`` that are let by
        self.held, self.go = threading.Event(), threading.Event()

    def hold_at(self, point: str, *, skip: int = 0) -> None:
        """Hold the next call that comes to ``point``, after ``skip`` others."""
        self.held, self.go = threading.Event(), threading.Event()
        self.hold, self.skip = point, skip

    def finish(self, batch: dict[str, Any]) -> None:
        good, bad = [], []
        for line in self.files[batch["input_file_id"]].splitlines():
            row = json.loads(line)
            assert row["method"] == "POST"
            assert row["url"] == batch["endpoint"] == "/v1/chat/completions"
            text = row["body"]["messages"][-1]["content"]
            self.asked[text] += 1
            out = self.outcome(text, self.asked[text])
            if out is not None:
                (good if out.get("error") is None else bad).append({"custom_id": row["custom_id"], **out})
        for name, rows in (("output_file_id", good), ("error_file_id", bad)):
            if rows:
                batch[name] = f"{batch['id']}-{name}"
                rows.reverse()  # the order of a batch's output is not that of its input
                self.files[batch[name]] = b"".join(json.dumps(r).encode() + b"\n" for r in rows)


class Handler(Quiet):
    server: Provider

    def do_POST(self) -> None:
        body = self.body()
        if self.failed():
            return
        if self.path == "/v1/chat/completions":
            self.chat(json.loads(body))
            return
        if self.path == "/v1/files":
            if self.holds("upload"):
                return
            # multipart/form-data: the part whose content type is not text is the file
            part = re.search(rb'filename="[^"]+"\r\n(?:[^\r\n]+\r\n)*\r\n(.*?)\r\n--', body, re.S)
            name = f"file-{len(self.server.files)}"
            self.server.files[name] = part.group(1)
            self.say({"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "x", "purpose": "batch"})
            return
        assert self.path == "/v1/batches"
        if self.holds("create"):
            return
        given = json.loads(body)
        batch = {"id": f"batch_{len(self.server.batches)}", "object": "batch", "created_at": 1, "status": "validating"}
        self.server.batches[batch["id"]] = batch | given
        if self.holds("created"):
            return
        self.say(self.server.batches[batch["id"]])

    def do_GET(self) -> None:
        if self.failed():
            return
        path = self.path.partition("?")[0]
        if path == "/v1/batches":
            rows = list(self.server.batches.values())[::-1]
            self.say({"object": "list", "data": rows, "has_more": False})
        elif path.startswith("/v1/batches/"):
            if self.holds("look"):
                return
            batch = self.server.batches[path.rpartition("/")[2]]
            self.server.looks[batch["id"]] += 1
            if self.server.looks[batch["id"]] == self.server.polls:
                batch["status"] = self.server.status
                if self.server.errors:
                    batch["errors"] = {"object": "list", "data": self.server.errors}
                self.server.finish(batch)
            self.say(batch)
        else:
            if self.holds("content"):
                return
            self.send(200, self.server.files[path.split("/")[3]], "application/octet-stream")

    def chat(self, body: dict[str, Any]) -> None:
        """Answer one request at once, as the same line of a batch that went well."""
        self.server.direct += 1
        self.say(self.server.outcome(body["messages"][-1]["content"], 99)["response"]["body"])

    def holds(self, point: str) -> bool:
        """Whether this call was held, and ended without an answer."""
        server = self.server
        if server.hold != point:
            return False
        if server.skip:
            server.skip -= 1
            return False
        server.hold = ""
        server.held.set()
        server.go.wait(60)
        self.close_connection = True
        return True

    def failed(self) -> bool:
        if not self.server.trouble:
            return False
        self.send(self.server.trouble.pop(0), b'{"error": {"message": "broken"}}')
        return True

    def say(self, value: object) -> None:
        self.send(200, json.dumps(value).encode())


def answered(text: str) -> dict[str, Any]:
    return {"response": {"status_code": 200, "body": completion("served-2", {"content": text}, 10, 2)}, "error": None}


def refused(status: int) -> dict[str, Any]:
    return {"response": {"status_code": status, "body": {"error": {"message": "no"}}}, "error": None}
