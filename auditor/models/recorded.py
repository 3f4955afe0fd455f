"""``recorded:FILE``: answers that were given earlier, by any gateway, judged as if they were given now.

One JSON object on each line::

    {"prompt_sha256": "…", "replicate": 0, "output": "positive"}
    {"variant_id": "c12ab.v3", "format": "plain", "output": "negative", "scores": {"negative": 0.8}}
    {"input": "A fine film.", "error": "timeout", "detail": "no answer in 60 s"}

Exactly one of ``output`` and ``error``; further fields are ignored, so a run's ``prompts.jsonl`` with an ``output``
added, or its ``responses.jsonl``, work as they are. A line is found by its strongest key: the prompt's SHA-256 (given,
or computed from ``messages``), else the variant id (with ``format`` only for that format), else the exact input text. A
line that names its prompt is never used for another one, and an answer never as its own repeat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import msgspec

from auditor.core import reading
from auditor.core.errors import BadRequest, BadResponse, CallError, DataFileError
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.reading import from_json
from auditor.core.types import Request, digest
from auditor.models.adapter import read_scores, user_text

Key = tuple[str, str, str, int]  # kind, value, format ("" for any), replicate


class _Message(msgspec.Struct):
    role: str
    content: str


class _Entry(msgspec.Struct):
    """One line as it was written."""

    prompt_sha256: str | None = None
    messages: list[_Message] | None = None
    variant_id: str | None = None
    input: str | None = None
    format: str | None = None
    replicate: Annotated[int, msgspec.Meta(ge=0)] = 0
    output: str | None = None
    scores: dict[str, float] | None = None
    model_reported: object = None
    error: str | None = None
    detail: str | None = None


class NotRecorded(BadRequest):
    """The file holds no answer to this prompt and replicate."""

    code = "not-recorded"


class RecordedFailure(CallError):
    """A failure that was recorded instead of an answer; keeps its code and is not asked again."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message or code)
        self.code = code


class Line(NamedTuple):
    """One recorded answer."""

    number: int
    key: Key
    reply: Reply | RecordedFailure
    variant_id: str | None
    input: str | None

    def same(self, other: Line) -> bool:
        """Return whether both hold the same answer; failures are alike."""
        if isinstance(self.reply, Reply) and isinstance(other.reply, Reply):
            return self.reply.text == other.reply.text
        return type(self.reply) is type(other.reply)


class Recorded(Model):
    """Looks answers up in a file of JSON lines.

    ``style`` is "text" if lines hold ``input`` and none holds ``messages``, else "chat". Raises `DataFileError`, with
    the line, for a malformed line or one that contradicts an earlier one.
    """

    costs: ClassVar[Costs] = "nothing"
    fast = True

    cacheable = False
    max_batch = 1000
    recorded = True  # asking for the rest costs nothing

    def __init__(self, path: str | Path) -> None:
        self._file = file = Path(path)
        self.name = f"recorded:{path}"
        try:
            content = reading.content(file)
        except OSError as error:
            raise DataFileError(
                f"{file}: the recorded answers could not be read: {error.strerror or error}. Prompts to answer are "
                "written by: audit generate --help"
            ) from error
        self.fingerprint = f"recorded:{hashlib.sha256(content).hexdigest()[:32]}"
        self._table: dict[Key, Line] = {}
        present: set[str] = set()
        for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
            if raw.strip():
                where = f"{file}, line {number}"
                try:
                    entry = msgspec.convert(from_json(raw.decode("utf-8")), _Entry)
                except UnicodeDecodeError as error:
                    raise DataFileError(f"{where}: not UTF-8 ({error.reason} at byte {error.start})") from error
                except ValueError as error:  # also of msgspec
                    raise DataFileError(f"{where}: not an answer ({error})") from error
                present |= {name for name in ("messages", "input") if getattr(entry, name) is not None}
                self._add(_line(entry, number, where))
        if not self._table:
            raise DataFileError(f"{file}: holds no recorded answers")
        self.style = "text" if present == {"input"} else "chat"

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Look up the recorded answers; `NotRecorded` where there is none."""
        return [self._look_up(request) for request in batch]

    def _add(self, line: Line) -> None:
        earlier = self._table.setdefault(line.key, line)
        # A gateway that answered each line of prompts.jsonl may have answered one prompt for two variants;
        # the audit asks it once, so the first answer stands.
        twice = line.key[0] == "prompt_sha256" and earlier.variant_id != line.variant_id
        if not (earlier is line or earlier.same(line) or twice):
            kind, value, _, replicate = line.key
            raise DataFileError(
                f"{self._file}, line {line.number}: a second, different answer for {kind} {value[:40]!r},"
                f" replicate {replicate} (the first is on line {earlier.number})."
                " Number repeats with the field replicate: 0, 1, 2"
            )

    def _look_up(self, request: Request) -> Reply | CallError:
        prompt, replicate = request.prompt, request.replicate
        text = user_text(prompt)
        keys: tuple[Key, ...] = (
            ("prompt_sha256", prompt.sha256, "", replicate),
            ("variant_id", request.variant_id, prompt.format, replicate),
            ("variant_id", request.variant_id, "", replicate),
            ("input", text, prompt.format, replicate),
            ("input", text, "", replicate),
        )
        for line in map(self._table.get, keys):
            if line is not None and (prompt.text is None or line.input in (None, prompt.text)):
                return line.reply
        return NotRecorded(
            f"{self.name} holds no answer for variant {request.variant_id}, format {prompt.format},"
            f" replicate {replicate} (prompt {prompt.sha256[:12]})"
        )


def _line(entry: _Entry, number: int, where: str) -> Line:
    if (entry.output is None) == (entry.error is None):
        raise DataFileError(f"{where}: expected exactly one of the fields output and error")
    sha, form = entry.prompt_sha256, entry.format or ""
    if sha is None and entry.messages is not None:
        sha = digest({"messages": msgspec.to_builtins(entry.messages)})
    if sha is not None:
        key: Key = ("prompt_sha256", sha.lower(), "", entry.replicate)
    elif entry.variant_id is not None:
        key = ("variant_id", entry.variant_id, form, entry.replicate)
    elif entry.input is not None:
        key = ("input", entry.input, form, entry.replicate)
    else:
        raise DataFileError(f"{where}: needs one of the fields prompt_sha256, messages, variant_id, input")
    reply: Reply | RecordedFailure
    if entry.output is None:
        reply = RecordedFailure(entry.error or "call-failed", entry.detail or "")
    else:
        try:
            scores = None if entry.scores is None else read_scores(entry.scores, "scores")
        except BadResponse as problem:
            raise DataFileError(f"{where}: {problem}") from problem
        reported = entry.model_reported if isinstance(entry.model_reported, str) else None
        reply = Reply(entry.output, scores=scores, model_reported=reported)
    return Line(number, key, reply, entry.variant_id, entry.input)
