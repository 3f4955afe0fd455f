"""``recorded:FILE``: answers that were given earlier, by any gateway, judged as if they were given now.

One JSON object on each line::

    {"prompt_sha256": "…", "replicate": 0, "output": "positive"}
    {"variant_id": "c12ab.v3", "format": "plain", "output": "negative", "scores": {"negative": 0.8}}
    {"input": "A fine film.", "error": "timeout", "detail": "no answer in 60 s"}

Exactly one of ``output`` and ``error``; ``replicate`` is 0 where it is left out; further fields are ignored,
so the lines of a run's own ``prompts.jsonl`` with an ``output`` added, or its ``responses.jsonl``, work as
they are. A line is found by the strongest key it has: the prompt's SHA-256 (given, or computed from
``messages``), else the variant id (with ``format`` only for that format), else the exact input text. A line
that names its prompt is never used for another prompt of the same variant. The replicate must match: an
answer is never used as its own repeat.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from auditor.core import userfile
from auditor.core.decoded import from_json
from auditor.core.errors import BadRequest, BadResponse, CallError, DataFileError
from auditor.core.protocols import Costs, Model, Reply
from auditor.core.types import Request, digest
from auditor.models.adapter import read_scores, user_text

Key = tuple[str, str, str, int]  # kind, value, format ("" for any), replicate


class NotRecorded(BadRequest):
    """The file holds no answer to this prompt and replicate."""

    code = "not-recorded"


class RecordedFailure(CallError):
    """A failure that was recorded instead of an answer; keeps its code and is not asked again."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message or code)
        self.code = code


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One recorded answer."""

    number: int
    key: Key
    reply: Reply | RecordedFailure
    variant_id: str | None
    input: str | None


class Recorded(Model):
    """Looks answers up in a file.

    Parameters
    ----------
    path : path
        A UTF-8 file of JSON lines, as the module describes.
    style : {"text", "chat"}, optional
        What was asked when the answers were recorded. By default "text" if lines hold ``input`` and
        none holds ``messages``, else "chat".

    Raises
    ------
    DataFileError
        The file is missing, empty, not UTF-8, or a line is malformed or contradicts an earlier one; names
        the line.
    """

    costs: ClassVar[Costs] = "nothing"

    cacheable = False
    max_batch = 1000
    recorded = True  # asking for the rest costs nothing

    def __init__(self, path: str | Path, *, style: Literal["text", "chat"] | None = None) -> None:
        file = Path(path)
        self.name = f"recorded:{path}"
        try:
            content = userfile.content(file)
        except OSError as error:
            raise DataFileError(
                f"{file}: the recorded answers could not be read: {error.strerror or error}. Expected "
                "recorded:FILE, one JSON object with an output on each line; prompts to answer are written by: "
                "audit generate --help"
            ) from error
        self.fingerprint = f"recorded:{hashlib.sha256(content).hexdigest()[:32]}"
        lines, has_messages, has_input = _read(content, file)
        self._table = _index(lines, file)
        self._unused = {line.number for line in lines}
        self.size = len(lines)
        self.style: Literal["text", "chat"] = style or ("text" if has_input and not has_messages else "chat")

    @property
    def unused(self) -> tuple[int, ...]:
        """The numbers of the lines that no request has used so far, ascending."""
        return tuple(sorted(self._unused))

    async def generate(self, batch: Sequence[Request]) -> Sequence[Reply | CallError]:
        """Look up the recorded answers; `NotRecorded` where there is none."""
        return [self._find(request) for request in batch]

    def _find(self, request: Request) -> Reply | CallError:
        prompt, replicate = request.prompt, request.replicate
        text = user_text(prompt)
        keys: tuple[Key, ...] = (
            ("prompt_sha256", prompt.sha256, "", replicate),
            ("variant_id", request.variant_id, prompt.format, replicate),
            ("variant_id", request.variant_id, "", replicate),
            ("input", text, prompt.format, replicate),
            ("input", text, "", replicate),
        )
        for key in keys:
            line = self._table.get(key)
            if line is None:
                continue
            if prompt.text is not None and line.input is not None and line.input != prompt.text:
                continue
            self._unused.discard(line.number)
            return line.reply
        return NotRecorded(
            f"{self.name} holds no answer for variant {request.variant_id}, format {prompt.format},"
            f" replicate {replicate} (prompt {prompt.sha256[:12]})"
        )


def _read(content: bytes, file: Path) -> tuple[list[Line], bool, bool]:
    """All lines; whether any holds messages, and whether any holds an input."""
    lines: list[Line] = []
    has_messages = has_input = False
    for number, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not raw.strip():
            continue
        where = f"{file}, line {number}"
        try:
            entry = from_json(raw.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise DataFileError(f"{where}: not UTF-8 ({error.reason} at byte {error.start})") from error
        except ValueError as error:
            raise DataFileError(f"{where}: not a JSON object ({error})") from error
        if not isinstance(entry, dict):
            raise DataFileError(f"{where}: expected a JSON object, found {type(entry).__name__}")
        has_messages |= entry.get("messages") is not None
        has_input |= entry.get("input") is not None
        lines.append(_line(entry, number, where))
    if not lines:
        raise DataFileError(f"{file}: holds no recorded answers")
    return lines, has_messages, has_input


def _line(entry: dict[str, object], number: int, where: str) -> Line:
    replicate = entry.get("replicate", 0)
    if isinstance(replicate, bool) or not isinstance(replicate, int) or replicate < 0:
        raise DataFileError(f"{where}: field replicate is {replicate!r}; expected a whole number from 0")
    fields = {
        name: _text(entry, name, where)
        for name in ("prompt_sha256", "variant_id", "input", "format", "output", "error", "detail")
    }
    if (fields["output"] is None) == (fields["error"] is None):
        raise DataFileError(f"{where}: expected exactly one of the fields output and error")
    sha = fields["prompt_sha256"]
    if sha is None and entry.get("messages") is not None:
        sha = _messages_sha(entry["messages"], where)
    format_ = fields["format"] or ""
    if sha is not None:
        key: Key = ("prompt_sha256", sha.lower(), "", replicate)
    elif fields["variant_id"] is not None:
        key = ("variant_id", fields["variant_id"], format_, replicate)
    elif fields["input"] is not None:
        key = ("input", fields["input"], format_, replicate)
    else:
        raise DataFileError(f"{where}: needs one of the fields prompt_sha256, messages, variant_id, input")
    return Line(
        number=number,
        key=key,
        reply=_reply(fields, entry, where),
        variant_id=fields["variant_id"],
        input=fields["input"],
    )


def _text(entry: dict[str, object], name: str, where: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise DataFileError(f"{where}: field {name} is {value!r}; expected text")
    return value


def _messages_sha(messages: object, where: str) -> str:
    if not isinstance(messages, list) or not all(
        isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str) for m in messages
    ):
        raise DataFileError(f"{where}: field messages is not a list of objects with role and content")
    return digest({"messages": [{"role": m["role"], "content": m["content"]} for m in messages]})


def _reply(fields: dict[str, str | None], entry: dict[str, object], where: str) -> Reply | RecordedFailure:
    if fields["error"] is not None:
        return RecordedFailure(fields["error"] or "call-failed", fields["detail"] or "")
    scores = entry.get("scores")
    if scores is not None:
        if not isinstance(scores, dict):
            raise DataFileError(f"{where}: field scores is not an object")
        try:
            scores = read_scores(scores, "scores")
        except BadResponse as error:
            raise DataFileError(f"{where}: {error}") from error
    reported = entry.get("model_reported")
    return Reply(
        text=fields["output"] or "", scores=scores, model_reported=reported if isinstance(reported, str) else None
    )


def _index(lines: Sequence[Line], file: Path) -> dict[Key, Line]:
    table: dict[Key, Line] = {}
    for line in lines:
        earlier = table.setdefault(line.key, line)
        if earlier is line or _same(earlier, line):
            continue
        # A gateway that answered each line of prompts.jsonl may have answered one prompt for two variants;
        # the audit asks it once, so the first answer stands.
        if line.key[0] == "prompt_sha256" and earlier.variant_id != line.variant_id:
            continue
        kind, value, _, replicate = line.key
        raise DataFileError(
            f"{file}, line {line.number}: a second, different answer for {kind} {value[:40]!r},"
            f" replicate {replicate} (the first is on line {earlier.number})."
            " Number repeats with the field replicate: 0, 1, 2"
        )
    return table


def _same(a: Line, b: Line) -> bool:
    if isinstance(a.reply, Reply) and isinstance(b.reply, Reply):
        return a.reply.text == b.reply.text
    return isinstance(a.reply, RecordedFailure) and isinstance(b.reply, RecordedFailure)
