"""Run folders: everything that one audit asked, got and concluded, on disk before it is used; read by id."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec.json import Decoder

from auditor._version import __version__
from auditor.core import record as run_records
from auditor.core.errors import RunFolderError
from auditor.core.reading import sha256 as file_sha256
from auditor.core.record import RunRecord
from auditor.core.record.base import Head
from auditor.core.types import FORMAT_VERSION, Case, Check, Prompt, Response, Variant, Verdict, digest
from auditor.store import redact
from auditor.store.journal import (
    CASE,
    PROMPT,
    RESPONSE,
    VERDICT,
    Index,
    Journal,
    Lock,
    case_line,
    decode,
    encode,
    genesis,
    hold,
    new_folder,
    pair_number,
    prompt_line,
    read_error,
    read_json,
    records,
    register,
    response_line,
    scan,
    short,
    sync_folder,
    verdict_line,
    write_bytes,
    write_json,
    writing,
)

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
        path = new_folder(root, f"{moment:%Y%m%d-%H%M%S}-{nonce}")
        lock = hold(path / ".lock", f"the run folder {path}")
        full = {
            "tool_version": __version__,
            **plan,
            "format_version": FORMAT_VERSION,
            "run_id": path.name,
            "created": moment.isoformat(timespec="seconds"),
        }
        write_json(path / PLAN, full)
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
        plan = read_json(path / PLAN, versioned=True)
        if (path / CASES).with_suffix("").is_dir():
            raise RunFolderError(f"{path} has journals in Parquet, which this version no longer reads. Run it again")
        lock = hold(path / ".lock", f"the run folder {path}") if write else None
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
        line = line or case_line(case, checks)
        return case.id, short(line), line, f"case {case.id}"

    def add_prompts(self, prompts: Iterable[tuple[str, Prompt]]) -> int:
        """Write what is asked for variants, as (variant id, prompt); return how many were not there yet."""
        return self._add_new(PROMPTS, map(self._prompt, prompts))

    def _prompt(self, item: tuple[str, Prompt]) -> tuple[str, int, bytes, str]:
        variant_id, prompt = item
        line = prompt_line(variant_id, redact.prompt(prompt) if self.redact else prompt)
        what = f"the prompt of {variant_id} (format {prompt.format})"
        return _asked(variant_id, prompt), short(prompt.sha256), line, what

    def add_responses(self, responses: Sequence[Response]) -> None:
        """Write answers. A later one for the same model, prompt and replicate takes the place of an earlier one."""
        places: list[int] = []
        self._journal(RESPONSES).extend(map(response_line, responses), places=places)
        for response, place in zip(responses, places, strict=True):
            if response.model in self._answers:
                self._answers[response.model].note(response, place)

    def write_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Write all verdicts anew; the old file stays whole until the new one is on disk."""
        self._journal(VERDICTS)  # not without the lock
        target, beside = self.path / VERDICTS, self.path / f"{VERDICTS}.new"
        with writing(target):
            beside.unlink(missing_ok=True)
            with Journal(beside, genesis(VERDICTS, self.plan_sha256)) as journal:
                journal.extend(map(verdict_line, verdicts))
                journal.sync()
            self._journals.pop(VERDICTS).close()
            os.replace(beside, target)
            sync_folder(self.path)

    def write_run(self, record: Mapping[str, Any]) -> None:
        """Write ``run.json`` with the heads of the journals, and enter the end of the run in the register.

        Values of the record may be dataclasses and structs. Raises `ValueError` where a number is NaN or infinite.
        """
        heads = {name: self._journal(name).head for name in JOURNALS}
        plain: dict[str, Any] = msgspec.to_builtins({**record, "journal": heads}, enc_hook=_plain)
        write_json(self.path / RUN, plain)
        sha256 = file_sha256(self.path / RUN)
        status = {name: plain.get(name) for name in ("status", "status_reason")}
        kept = {name: plain["journal"][name] for name in GROWING}
        register(self.path.parent, "ended", self.id, run_sha256=sha256, journal=kept, **status)

    def write_text(self, name: str, text: str) -> Path:
        """Write a report into the folder in one step; returns its path. The register gets the hash of the report."""
        path = self.path / name
        write_bytes(path, text.encode("utf-8", "backslashreplace"))
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
        return read_json(path, versioned=True)

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
            self._written[CASES].claim(short(case.id), short(encode(case)))
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


# -- records by id -----------------------------------------------------------------------------------------------------


KEPT = 256  # cases kept in memory
T = TypeVar("T")
JUDGE = "judge."  # how the ids of what a judge of texts was asked begin


class Records(Generic[T]):
    """The records of a journal by a field, or by ``part`` of it where records that share this come in runs.

    The file is indexed in one pass when it is first searched. It opens when needed and closes with this object.
    """

    def __init__(self, path: Path, decoder: Decoder[T], field: str, part: Callable[[str], str] | None = None) -> None:
        self._path, self._decoder, self._field, self._part = path, decoder, field, part

    @cached_property
    def _file(self) -> BinaryIO:
        try:
            file = self._path.open("rb")
        except OSError as error:
            raise read_error(self._path, error) from error
        weakref.finalize(self, file.close)
        return file

    def at(self, offset: int) -> Iterator[T]:
        """Yield the records from a byte of the file on."""
        while True:
            self._file.seek(offset)
            line = self._file.readline()
            if not line.endswith(b"\n"):
                return
            offset += len(line)
            yield decode(line, self._decoder, self._path, self._path)

    def find(self, key: str) -> Iterator[T]:
        """Yield the records of a key in the order written."""
        for offset in self._index.get(short(key)):
            for record in self.at(offset):
                if self._key(record) != key:
                    break
                yield record
                if self._part is None:
                    break

    @cached_property
    def _index(self) -> Index:
        """Where records, or runs of them, begin, by digests of their keys."""
        only = Decoder(msgspec.defstruct("Only", [(self._field, str)]))
        index, last = Index(), None
        for offset, line in scan(self._path, only):
            key = self._key(line)
            if self._part is None or key != last:
                index.add(short(key), offset)
            last = key
        return index

    def _key(self, record: object) -> str:
        value: str = getattr(record, self._field)
        return value if self._part is None else self._part(value)


class Answers:
    """The answers of one model in a journal, by question; only offsets stay in memory."""

    def __init__(self, path: Path, model: str) -> None:
        self._records, self._model = Records(path, RESPONSE, "prompt_sha256"), model
        self._index = Index()

    def note(self, response: Response, offset: int) -> None:
        """Say where the line of an answer begins; a later one takes the place of an earlier one."""
        self._index.add(pair_number((response.prompt_sha256, response.replicate)), offset)

    def get(self, key: tuple[str, int]) -> Response | None:
        """Return the answer to (prompt sha256, replicate), if there is one."""
        offsets = self._index.get(pair_number(key))
        if not offsets:
            return None
        response = next(self._records.at(offsets[-1]))
        same = (response.prompt_sha256, response.replicate, response.model) == (*key, self._model)
        return response if same else None

    def __contains__(self, key: tuple[str, int]) -> bool:
        return pair_number(key) in self._index

    def __len__(self) -> int:
        return len(self._index)


class Evidence:
    """Random access to the records of a run, for reports; only offsets stay in memory.

    The folder must not be written meanwhile; ``owner`` is kept as long as this object. An unknown id raises
    `RunFolderError`.
    """

    def __init__(self, path: Path, owner: object = None) -> None:
        self.path, self._owner = path, owner
        self._cases = Records(path / CASES, CASE, "id")
        self._prompts = Records(path / PROMPTS, PROMPT, "variant_id", _start)
        self._responses = Records(path / RESPONSES, RESPONSE, "prompt_sha256")
        self._verdicts = Records(path / VERDICTS, VERDICT, "variant_id", _start)
        self._case = lru_cache(KEPT)(self._read_case)

    def cases(self) -> Iterator[tuple[Case, Mapping[str, Check]]]:
        """Each case with the checks of its variants, in the order written."""
        for _, line in scan(self.path / CASES, CASE):
            yield line.case(), line.checks()

    def case(self, case_id: str) -> Case:
        """The case with this id."""
        if (held := self._case(case_id)) is None:
            raise self._unknown("case", case_id)
        return held[0]

    def case_of(self, variant_id: str) -> Case:
        """The case that holds this variant, or whose original it is."""
        return self._holding(variant_id)[0]

    def variant(self, variant_id: str) -> Variant:
        """The variant (or original) with this id."""
        case = self.case_of(variant_id)
        return next(v for v in (case.original, *case.variants) if v.id == variant_id)

    def check(self, variant_id: str) -> Check | None:
        """What the validity check said; None for originals and where none was run."""
        return self._holding(variant_id)[1].get(variant_id)

    def prompts(self, variant_id: str) -> list[Prompt]:
        """What was asked for this variant: one prompt for each format. Empty if nothing was asked."""
        return [line.prompt() for line in self._prompts.find(_start(variant_id)) if line.variant_id == variant_id]

    def responses(self, variant_id: str) -> list[Response]:
        """Return the answers to this variant's prompts, by model, format and replicate; the later of two counts.

        Variants with equal prompts share answers; each names the variant and format that it is given for here.
        """
        formats: dict[str, list[str]] = {}
        for prompt in self.prompts(variant_id):
            formats.setdefault(prompt.sha256, []).append(prompt.format)
        answers = {
            (response.model, name, response.replicate): replace(response, variant_id=variant_id, format=name)
            for sha256, names in formats.items()
            for response in self._responses.find(sha256)
            for name in names
        }
        return [answers[key] for key in sorted(answers)]

    def judged(self, about: str) -> dict[str, Prompt]:
        """What a judge of texts was asked about ``about``, by id, in the order of the questions."""
        return {line.variant_id: line.prompt() for line in self._prompts.find(JUDGE + about)}

    def verdicts(self, variant_id: str) -> list[Verdict]:
        """The verdicts on this variant, one for each model and format."""
        return [verdict for verdict in self._verdicts.find(_start(variant_id)) if verdict.variant_id == variant_id]

    def _read_case(self, case_id: str) -> tuple[Case, dict[str, Check]] | None:
        line = next(self._cases.find(case_id), None)
        return None if line is None else (line.case(), line.checks())

    def _holding(self, variant_id: str) -> tuple[Case, Mapping[str, Check]]:
        """Return the case of a variant: by what its id begins with, or else by going through all cases."""
        start = variant_id
        while start:
            held = self._case(start)
            if held is not None and variant_id in _ids(held[0]):
                return held
            start = start.rpartition(".")[0]
        for case, checks in self.cases():
            if variant_id in _ids(case):
                return case, checks
        raise self._unknown("variant", variant_id)

    def _unknown(self, what: str, key: str) -> RunFolderError:
        return RunFolderError(f"{self.path} holds no {what} {key!r}. See what it holds with: audit report {self.path}")


def _ids(case: Case) -> set[str]:
    return {one.id for one in (case.original, *case.variants)}


def _start(variant_id: str) -> str:
    """What the ids of all variants of a case begin with, where they are made of the case's id."""
    return variant_id.rpartition(".")[0] or variant_id
