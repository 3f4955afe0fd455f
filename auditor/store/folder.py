"""Run folders: everything that one audit asked, got and concluded, on disk before it is used."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec

from auditor._version import __version__
from auditor.core import record as run_records
from auditor.core.errors import RunFolderError
from auditor.core.reading import sha256 as file_sha256
from auditor.core.record import RunRecord
from auditor.core.record.base import Head
from auditor.core.types import FORMAT_VERSION, Case, Check, Prompt, Response, Verdict, digest
from auditor.store import disk, redact
from auditor.store.disk import CASE, PROMPT, RESPONSE, VERDICT, Lock
from auditor.store.evidence import Answers, Evidence
from auditor.store.journal import Index, Journal, genesis, records, register, scan, short

PLAN, RUN = "plan.json", "run.json"
CASES, PROMPTS, RESPONSES, VERDICTS = "cases.jsonl", "prompts.jsonl", "responses.jsonl", "verdicts.jsonl"
JOURNALS = (CASES, PROMPTS, RESPONSES, VERDICTS)
GROWING = (CASES, PROMPTS, RESPONSES)  # only appended to; verdicts are written anew at each end
REPORT = "report.html"
IN_MEMORY = "in-memory"  # the id of a run whose folder goes with it
ToWrite = tuple[Case, Mapping[str, Check], bytes | None]  # a case, its checks, and its line where that was made before


class RunFolder:
    """One run on disk. Make one with `create`, come back to it with `open`.

    ``plan`` is ``plan.json`` as plain data; the hash chains of the journals start from its digest. ``temporary``: the
    folder goes with this object.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     with RunFolder.create(Path(root), {"task": "sentiment"}) as folder:
    ...         folder.write_verdicts([Verdict(case_id="c", variant_id="c.v0", order=1,
    ...                                        attributes=("gender",), outcome="pass")])
    ...     [verdict.outcome for verdict in RunFolder.open(folder.path).verdicts()]
    ['pass']
    """

    latest: ClassVar[Path | None] = None  # the last one that this process wrote to, for what Ctrl-C says

    temporary = False

    def __init__(self, path: Path, plan: dict[str, Any], *, lock: Lock | None) -> None:
        if lock is not None:
            RunFolder.latest = path
        self.path, self.plan, self.plan_sha256 = path, plan, digest(plan)
        self._lock = lock
        self._journals: dict[str, Journal] = {}
        self._written = {CASES: Index(), PROMPTS: Index()}  # digests of contents by those of keys
        self._answers: dict[str, Answers] = {}

    @property
    def id(self) -> str:
        """The run id, such as ``20261121-142233-1a2b3c``."""
        return IN_MEMORY if self.temporary else self.path.name

    @property
    def redact(self) -> bool:
        """Whether the plan keeps texts out of the folder."""
        plan = self.plan.get("plan", {})
        return isinstance(plan, dict) and bool(plan.get("redact", False))

    def require_texts(self, what: str) -> None:
        """Refuse ``what`` needs the texts of a redacted run."""
        if self.redact:
            raise RunFolderError(
                f"{self.path} was written with --redact: {what} needs the texts, and the folder holds digests only. "
                "Run the audit again without --redact, from the same --data"
            )

    @classmethod
    def create(cls, root: Path, plan: Mapping[str, object], *, now: datetime | None = None) -> Self:
        """Make a new run folder under ``root`` from a plan without NaN, and enter it in the register."""
        moment = (now or datetime.now(UTC)).astimezone(UTC)
        nonce = digest([dict(plan), moment.isoformat(), os.getpid()])[:6]
        path = disk.new_folder(root, f"{moment:%Y%m%d-%H%M%S}-{nonce}")
        lock = disk.hold(path / ".lock", f"the run folder {path}")
        full = {
            "tool_version": __version__,
            **plan,
            "format_version": FORMAT_VERSION,
            "run_id": path.name,
            "created": moment.isoformat(timespec="seconds"),
        }
        disk.write_json(path / PLAN, full)
        folder = cls(path, json.loads(json.dumps(full)), lock=lock)
        register(root, "started", path.name, plan_sha256=folder.plan_sha256)
        return folder

    @classmethod
    def in_memory(cls, plan: Mapping[str, object] | None = None) -> Self:
        """Make a folder among the temporary files of the system, which goes when this object and its evidence go."""
        root, latest = Path(tempfile.mkdtemp(prefix="audit-")), RunFolder.latest
        folder = cls.create(root, plan or {})
        weakref.finalize(folder, _discard, root, folder._journals, folder._lock)
        folder.temporary, RunFolder.latest = True, latest
        return folder

    @classmethod
    def open(cls, path: Path | str, *, write: bool = False) -> Self:
        """Come back to a run folder; with ``write``, to resume the run: take the lock and index what is there.

        Raises `RunFolderError` where it is not a run folder, is of a newer format, or another process writes it.
        """
        path = Path(path)
        if not path.is_dir():
            raise RunFolderError(f"there is no run folder {path}. Look for runs in: {path.parent}")
        if not (path / PLAN).is_file():
            raise RunFolderError(f"{path} is not a run folder: it holds no {PLAN}")
        plan = disk.read_json(path / PLAN)
        disk.check_format(path / PLAN, plan)
        if (path / CASES).with_suffix("").is_dir():
            raise RunFolderError(f"{path} has journals in Parquet, which this version no longer reads. Run it again")
        lock = disk.hold(path / ".lock", f"the run folder {path}") if write else None
        folder = cls(path, plan, lock=lock)
        if write:
            try:
                folder._index()
                register(path.parent, "resumed", folder.id, plan_sha256=folder.plan_sha256)
            except BaseException:
                folder.close()
                raise
        return folder

    def add_cases(self, cases: Iterable[ToWrite]) -> int:
        """Write several cases; return how many were not there yet.

        Raises `RunFolderError` where a case is there with another content.
        """
        return self._add_new(CASES, map(self._case, cases))

    def _case(self, item: ToWrite) -> tuple[str, int, bytes, str]:
        case, checks, line = item
        if self.redact:
            case, checks, line = redact.case(case), redact.checks(checks), None
        line = line or disk.case_line(case, checks)
        return case.id, short(line), line, f"case {case.id}"

    def add_prompt(self, variant_id: str, prompt: Prompt) -> bool:
        """Write what is asked for one variant in one format; False if it is there already."""
        return self.add_prompts([(variant_id, prompt)]) == 1

    def add_prompts(self, prompts: Iterable[tuple[str, Prompt]]) -> int:
        """Write several (variant id, prompt); return how many were not there yet."""
        return self._add_new(PROMPTS, map(self._prompt, prompts))

    def _prompt(self, item: tuple[str, Prompt]) -> tuple[str, int, bytes, str]:
        variant_id, prompt = item
        line = disk.prompt_line(variant_id, redact.prompt(prompt) if self.redact else prompt)
        what = f"the prompt of {variant_id} (format {prompt.format})"
        return _asked(variant_id, prompt), short(prompt.sha256), line, what

    def add_response(self, response: Response) -> None:
        """Write one answer. A later one for the same model, prompt and replicate takes its place."""
        self.add_responses((response,))

    def add_responses(self, responses: Sequence[Response]) -> None:
        """Write several answers at once."""
        places: list[int] = []
        self._journal(RESPONSES).extend(map(disk.response_line, responses), places=places)
        for response, place in zip(responses, places, strict=True):
            if response.model in self._answers:
                self._answers[response.model].note(response, place)

    def write_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Write all verdicts anew; the old file stays whole until the new one is on disk."""
        self._journal(VERDICTS)  # not without the lock
        target, beside = self.path / VERDICTS, self.path / f"{VERDICTS}.new"
        with disk.writing(target):
            beside.unlink(missing_ok=True)
            with Journal(beside, genesis(VERDICTS, self.plan_sha256)) as journal:
                journal.extend(map(disk.verdict_line, verdicts))
                journal.sync()
            self._journals.pop(VERDICTS).close()
            os.replace(beside, target)
            disk.sync_folder(self.path)

    def write_run(self, record: Mapping[str, Any]) -> None:
        """Write ``run.json`` with the heads of the journals, and enter the end of the run in the register.

        Values of the record may be dataclasses and structs. Raises `ValueError` where a number is NaN or infinite.
        """
        heads = {name: self._journal(name).head for name in JOURNALS}
        plain: dict[str, Any] = msgspec.to_builtins({**record, "journal": heads}, enc_hook=_plain)
        disk.write_json(self.path / RUN, plain)
        sha256 = file_sha256(self.path / RUN)
        status = {name: plain.get(name) for name in ("status", "status_reason")}
        kept = {name: plain["journal"][name] for name in GROWING}
        register(self.path.parent, "ended", self.id, run_sha256=sha256, journal=kept, **status)

    def write_text(self, name: str, text: str) -> Path:
        """Write a report into the folder in one step; returns its path. The register gets the hash of the report."""
        path = self.path / name
        disk.write_bytes(path, text.encode("utf-8", "backslashreplace"))
        if name == REPORT:
            register(self.path.parent, "reported", self.id, report_sha256=file_sha256(path))
        return path

    def close(self) -> None:
        """Close all files and let go of the lock; closing twice does nothing."""
        for journal in self._journals.values():
            journal.close()
        self._journals.clear()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cases(self) -> Iterator[tuple[Case, Mapping[str, Check]]]:
        """Each case with the checks of its variants, in the order written."""
        return self.evidence().cases()

    def responses(self) -> Iterator[Response]:
        """All answers, in the order written; of two for one question the later one counts."""
        return records(self.path / RESPONSES, RESPONSE)

    def answers(self, model: str) -> Answers:
        """The answers of one model that are added from now on, and those that `recall` found, by question."""
        return self._answers.setdefault(model, Answers(self.path / RESPONSES, model))

    def recall(self, wanted: Callable[[Response], bool]) -> Iterator[Response]:
        """All answers, in the order written; those that are ``wanted`` are found again by `answers`."""
        for offset, response in scan(self.path / RESPONSES, RESPONSE):
            if wanted(response):
                self.answers(response.model).note(response, offset)
            yield response

    def verdicts(self) -> Iterator[Verdict]:
        """All verdicts, in the order written."""
        return records(self.path / VERDICTS, VERDICT)

    def has_record(self) -> bool:
        """Whether the run came to its ``run.json``."""
        return (self.path / RUN).is_file()

    def record(self) -> dict[str, Any]:
        """``run.json`` as plain data; `RunFolderError` where it is of a newer format, or there is none yet."""
        path = self.path / RUN
        if not self.has_record():
            raise RunFolderError(f"{path} is missing: the run did not end. Finish it with: audit resume {self.path}")
        record = disk.read_json(path)
        disk.check_format(path, record)
        return record

    def run(self) -> RunRecord:
        """``run.json`` as typed values; `RunFolderError` as for `record`, or where it has another shape."""
        return run_records.read(self.record())

    def evidence(self) -> Evidence:
        """Access by id, for reports."""
        return Evidence(self.path, owner=self)

    def heads(self) -> dict[str, Head]:
        """Records and last hash of each journal, as ``run.json`` names them; empty without one."""
        named = self.record().get("journal", {}) if self.has_record() else {}
        try:
            return msgspec.convert(named, dict[str, Head])
        except msgspec.ValidationError as error:
            raise RunFolderError(f"{self.path / RUN} does not say how its journals end: it was changed") from error

    def _journal(self, name: str) -> Journal:
        if self._lock is None:
            raise ValueError(f"{self.path} is not open for writing")
        if name not in self._journals:
            self._journals[name] = Journal(self.path / name, genesis(name, self.plan_sha256))
        return self._journals[name]

    def _add_new(self, name: str, items: Iterable[tuple[str, int, bytes, str]]) -> int:
        """Write the lines that are not there yet; ``items`` are (key, digest of the content, line, what it is)."""
        fresh = []
        for key, content, line, what in items:
            known = self._written[name].claim(short(key), content)
            if known is None:
                fresh.append(line)
            elif known != content:
                raise RunFolderError(
                    f"{what} is not what {self.path / name} holds: the texts, dictionaries, prompts, answers or "
                    f"this tool have changed since the run began. Undo the change, or start a new run"
                )
        if fresh:
            self._journal(name).extend(fresh)
        return len(fresh)

    def _index(self) -> None:
        for name in GROWING:
            self._journal(name)  # cuts off a torn line first
        for case in records(self.path / CASES, CASE):
            self._written[CASES].claim(short(case.id), short(disk.encode(case)))
        for line in records(self.path / PROMPTS, PROMPT):
            self._written[PROMPTS].claim(short(_asked(line.variant_id, line.prompt())), short(line.prompt_sha256))


def _discard(root: Path, journals: Mapping[str, Journal], lock: Lock | None) -> None:
    """Close and remove a folder that goes with its object."""
    for journal in journals.values():
        journal.close()
    if lock is not None:
        lock.release()
    shutil.rmtree(root, ignore_errors=True)


def _plain(value: Any) -> object:
    """Return a mapping, or a number of numpy, as plain data."""
    return dict(value) if isinstance(value, Mapping) else value.item()


def _asked(variant_id: str, prompt: Prompt) -> str:
    """What makes a prompt another one of its variant: its format, and whether it is a text or messages."""
    return f"{variant_id}\n{prompt.format}\n{'messages' if prompt.text is None else 'input'}"
