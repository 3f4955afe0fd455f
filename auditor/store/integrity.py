"""Whether a run folder is as it was written: chains, cross references, the register, and a signature.

``signature.json`` signs the head of a run with an Ed25519 key. Who has the key vouches that a run had this head when it
was signed. Keys come from elsewhere, such as ``openssl genpkey -algorithm ed25519 -out key.pem`` and
``openssl pkey -in key.pem -pubout -out public.pem``.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from auditor.core import reading
from auditor.core.errors import ConfigError, MissingDependency, RunFolderError
from auditor.core.reading import sha256 as file_sha256
from auditor.core.record import head
from auditor.core.record.base import Head
from auditor.core.shown import plural, quoted
from auditor.core.types import canonical
from auditor.store.folder import CASES, GROWING, JOURNALS, PLAN, PROMPTS, REPORT, RESPONSES, RUN, VERDICTS, RunFolder
from auditor.store.journal import (
    REGISTER,
    Event,
    events,
    genesis,
    intact,
    link_of,
    read,
    read_error,
    read_json,
    write_json,
)

SIGNATURE = "signature.json"
ProblemKind = Literal["changed", "missing", "reordered", "torn", "other-plan"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a file of a run folder.

    ``line`` counts from 1; it is None where the whole file is meant.
    """

    file: str
    line: int | None
    kind: ProblemKind
    message: str

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{where}: {self.message}"


def verify(path: Path, start: str, head: Head | None = None) -> list[Problem]:
    """Recompute the chain of a journal, in one pass; return what is wrong.

    A missing file is an empty journal. Without ``head``, lines missing at the end are not seen.
    """
    problems: list[Problem] = []
    number, seq, last, known = 0, 0, start, True  # known: whether ``last`` is the hash of record seq - 1

    def note(line: int | None, kind: ProblemKind, message: str) -> None:
        problems.append(Problem(path.name, line, kind, message))

    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                link = link_of(line)
                if not line.endswith(b"\n"):
                    note(number, "torn", "the last line is incomplete (the run was interrupted while writing)")
                elif link is None or not intact(line, link):
                    # Its own number is not to be trusted: count it by where it stands.
                    what = (
                        "is not a journal record" if link is None else f"holds record {seq}, whose hash does not match"
                    )
                    note(number, "changed", f"this line {what}: it was changed")
                    seq, last, known = seq + 1, "" if link is None else link.hash, link is not None
                elif link.seq < seq:
                    note(number, "reordered", f"record {link.seq} comes after record {seq - 1}")
                else:
                    if link.seq > seq:
                        which = f"record {seq} is" if link.seq == seq + 1 else f"records {seq} to {link.seq - 1} are"
                        note(number, "missing", f"{which} missing before this line")
                    elif known and link.prev != last and seq == 0:
                        note(number, "other-plan", "the file belongs to another plan, or plan.json was changed")
                    elif known and link.prev != last:
                        message = f"record {seq - 1} was changed or replaced: record {seq} does not follow from it"
                        note(number - 1, "changed", message)
                    seq, last, known = link.seq + 1, link.hash, True
    except FileNotFoundError:
        pass
    except OSError as error:
        raise read_error(path, error) from error
    if head is not None:
        named = f"holds {plural(seq, 'record')}, but run.json names {head.records}"
        if seq < head.records:
            note(None, "missing", f"{named}: lines at the end are missing")
        elif seq > head.records:
            note(None, "changed", f"{named}: lines were added after the run")
        elif known and last != head.hash:
            note(None, "changed", "its last hash is not the one in run.json: the chain was made anew")
    return problems


def verify_folder(path: Path) -> list[Problem]:
    """Return everything that can be seen to be wrong with a run folder; `LIMITS` says what this cannot show.

    Checks the chain of each journal, the hashes in ``run.json`` and the register, and that all answers were asked for.
    """
    folder = RunFolder.open(path)
    problems = _chains(folder, folder.heads())
    problems += _register(folder)
    problems += _named(folder)
    if not problems:
        problems += _references(folder)
    return problems


LIMITS = (
    "Not shown: that a model gave these answers. Also not: deletions before the first end of the run, or a whole "
    "folder made again together with its register.",
    "Note the head elsewhere when the run ends, and compare it later with --head; or sign it with --sign.",
)


def require_intact(path: Path) -> None:
    """Raise `RunFolderError` where something in a run folder was changed.

    Of a run that was cut off after an end, only what that end named is compared: the journals grew since.
    """
    folder = RunFolder.open(path)
    own = _events(folder)
    cut_off = not folder.has_record() or bool(own and own[-1].event == "resumed")
    problems = _chains(folder, {} if cut_off else folder.heads())
    problems += _ends(folder, own) if cut_off else _register(folder) + _named(folder)
    # A line that was cut off by a kill is no change, and a report that was edited is not read again.
    problems = [p for p in problems if p.kind != "torn" and p.file != REPORT]
    if problems:
        more = f" (and {plural(len(problems) - 1, 'further place')})" if len(problems) > 1 else ""
        raise RunFolderError(
            f"{path} is not as it was written: {problems[0]}{more}.", below=f"Run: audit verify {quoted(path)}"
        )


def ends_of(path: Path) -> list[Event]:
    """Every end that the register names of a run, oldest first."""
    return [event for event in _events(RunFolder.open(path)) if event.event == "ended"]


def compare_head(path: Path, noted: str) -> list[Problem]:
    """What is wrong where ``noted`` is the head when the run ended; `ConfigError` where it is no hash."""
    wanted = noted.strip().lower()
    if len(wanted) != 64 or set(wanted) - set("0123456789abcdef"):
        raise ConfigError(f"--head takes the 64 digits that a report or a run names as its head; got {noted!r}")
    now = head(RunFolder.open(path).record())
    return [] if wanted == now else [changed(RUN, f"the head is {now}, not {wanted}: this is another record")]


def _events(folder: RunFolder) -> list[Event]:
    return [event for event in events(folder.path.parent) if event.run == folder.id]


def _chains(folder: RunFolder, heads: Mapping[str, Head]) -> list[Problem]:
    return [
        problem
        for name in JOURNALS
        for problem in verify(folder.path / name, genesis(name, folder.plan_sha256), heads.get(name))
    ]


def _ends(folder: RunFolder, own: Iterable[Event]) -> list[Problem]:
    """Where journals do not hold any more what they held at an end of the run: they are only ever appended to."""
    wanted: dict[str, dict[int, tuple[str, str]]] = {name: {} for name in GROWING}
    for event in own:
        for name, kept in event.journal.items():
            if name in wanted and kept.records:
                wanted[name][kept.records] = kept.hash, event.time
    problems = []
    for name, ends in wanted.items():
        hashes = _hashes(folder.path / name, set(ends))
        for records, (last, time) in sorted(ends.items()):
            if hashes.get(records) != last:
                message = (
                    f"the {plural(records, 'record')} that were there when the run ended at {time} are not "
                    "there any more: they were deleted or made anew since"
                )
                problems.append(changed(name, message))
                break
    return problems


def _hashes(path: Path, numbers: set[int]) -> dict[int, str]:
    """The hashes at the end of some lines of a journal, counted from 1."""
    if not numbers or not path.is_file():
        return {}
    with path.open("rb") as file:
        return {n: line[-67:-3].decode("ascii", "replace") for n, line in enumerate(file, 1) if n in numbers}


def checked(path: Path) -> list[str]:
    """Return what `verify_folder`, which saw nothing wrong, had to look at."""
    folder = RunFolder.open(path)
    records = {name: sum(1 for _ in read(folder.path / name)) for name in JOURNALS}
    source = (folder.record().get("provenance") or {}) if folder.has_record() else {}
    own = _events(folder)
    named = {
        PLAN: {RUN: "plan_sha256" in source, REGISTER: any(e.plan_sha256 for e in own)},
        RUN: {REGISTER: any(e.run_sha256 for e in own)},
        **{name: {RUN: True} for name in sorted(source.get("files") or {})},
        REPORT: {REGISTER: any(e.report_sha256 for e in own)},
    }
    sentences = []
    for name, places in named.items():
        by = " and ".join(place for place, there in places.items() if there)
        sentence = f"the SHA-256 is that in {by}." if by else "not checked: nothing names its SHA-256."
        if (folder.path / name).is_file():
            sentences.append(f"{name}: {sentence}")
    if full := ", ".join(f"{name} ({plural(n, 'record')})" for name, n in records.items() if n):
        sentences.append(f"Journals: every line is as it was written in {full}.")
    if empty := ", ".join(name for name, n in records.items() if not n):
        sentences.append(f"Empty journals, in which there was nothing to check: {empty}.")
    if not own:
        why = f"no {REGISTER} next to the folder names this run"
        return [*sentences, f"NOT CHECKED: {why}: whether the run ended before, or was made anew, cannot be seen."]
    ends = [e for e in own if e.event == "ended"]
    resumed = plural(sum(e.event == "resumed" for e in own), "time")
    sentences.append(f"The register names {plural(len(ends), 'end')} of this run, which was resumed {resumed}.")
    sentences += [f"End {n}: {e.time}, {e.status}, SHA-256 of {RUN} {e.run_sha256}." for n, e in enumerate(ends, 1)]
    return sentences


def _register(folder: RunFolder) -> list[Problem]:
    register = folder.path.parent / REGISTER
    if not register.is_file():
        return []
    if problems := verify(register, genesis(REGISTER, "")):
        return problems
    own = _events(folder)
    plan, run, report = (
        next((value for event in reversed(own) if (value := getattr(event, f"{name}_sha256"))), "")
        for name in ("plan", "run", "report")
    )
    problems = _ends(folder, own)
    if report and (folder.path / REPORT).is_file():
        problems += _compared(folder, REPORT, report, REGISTER)
    if plan and not run and (folder.path / RUN).is_file():
        message = f"it names the start of this run and not its end, but {RUN} is there: lines at the end are missing"
        problems.append(Problem(REGISTER, None, "missing", message))
    if plan and plan != folder.plan_sha256:
        problems.append(changed(PLAN, f"is not the plan that {REGISTER} names for this run: it was changed"))
    return problems + (_compared(folder, RUN, run, REGISTER) if run else [])


def _named(folder: RunFolder) -> list[Problem]:
    """What ``run.json`` names by hash: the plan, and the files that a search over rows wrote beside it."""
    if not folder.has_record():
        return []
    source = folder.record().get("provenance") or {}
    if not isinstance(source, dict) or not isinstance(source.get("files") or {}, dict):
        return [changed(RUN, "does not say where it comes from: it was changed after the run")]
    problems = []
    plan = source.get("plan_sha256")
    if plan is not None and plan != folder.plan_sha256:
        problems.append(changed(PLAN, f"is not the plan whose hash {RUN} names: one of the two was changed"))
    for name, sha256 in sorted((source.get("files") or {}).items()):
        problems += _compared(folder, name, sha256, RUN)
    return problems


def _compared(folder: RunFolder, name: str, sha256: str, by: str) -> list[Problem]:
    """What is wrong with a file whose hash another one names."""
    path = folder.path / name
    if not path.is_file():
        return [Problem(name, None, "missing", f"{by} names it, but it is missing")]
    if file_sha256(path) != sha256:
        return [changed(name, f"is not the file whose hash {by} names: it was changed after the run")]
    return []


def _references(folder: RunFolder) -> list[Problem]:
    """Records that refer to what is not there; one problem for each file."""
    known = {variant.id for case, _ in folder.cases() for variant in (case.original, *case.variants)}
    asked = {record["prompt_sha256"] for record in read(folder.path / PROMPTS)}
    problems: list[Problem] = []
    for name, field, there, what in (
        (PROMPTS, "variant_id", known, CASES),
        (RESPONSES, "prompt_sha256", asked, PROMPTS),
        (VERDICTS, "variant_id", known, CASES),
    ):
        for line, record in enumerate(read(folder.path / name), 1):
            # The texts of the positive control belong to the task, and those of a judge to answers, not to a case.
            if record[field] not in there and not str(record[field]).startswith(("control.", "judge.")):
                problems.append(Problem(name, line, "missing", f"{field} {record[field]!r} is not in {what}"))
                break
    return problems


def changed(file: str, message: str) -> Problem:
    """What is wrong with a whole file that is not as it was written."""
    return Problem(file, None, "changed", message)


# -- a signature over the head of a run --------------------------------------------------------------------------------


def sign(path: Path, key: Path) -> Path:
    """Sign the head of the run in ``path``, and its reports, with the private key in ``key``; gives its file.

    Raises
    ------
    MissingDependency
        The extra ``sign`` is not installed.
    ConfigError
        The key cannot be read, has a pass phrase, or is of another kind.
    """
    serialization, ed25519, _ = _library()
    folder = RunFolder.open(path)
    try:
        private = serialization.load_pem_private_key(reading.content(key, largest=reading.SETTINGS), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"--sign {key}: no private key in PEM form without a pass phrase: {error}") from None
    if not isinstance(private, ed25519.Ed25519PrivateKey):
        raise ConfigError(f"--sign {key}: an Ed25519 key is needed; this one is of another kind")
    signed: dict[str, object] = {
        "run": folder.id,
        "head": head(folder.record()),
        "reports": _reports(path),
        "signed": datetime.now(UTC).isoformat(timespec="seconds"),
        "public_key": _base64(private.public_key().public_bytes_raw()),
    }
    write_json(folder.path / SIGNATURE, signed | {"signature": _base64(private.sign(canonical(signed)))})
    return folder.path / SIGNATURE


def check_signature(path: Path, public: Path | None) -> tuple[list[Problem], list[str]]:
    """What is wrong with the signature of a run, and what is said of it.

    ``public`` is the key that must have signed it; None: whichever did is named.
    """
    file = path / SIGNATURE
    if not file.is_file():
        if public is None:
            return [], []
        return [Problem(SIGNATURE, None, "missing", "there is no signature, and --signed-by asks for one")], []
    try:
        serialization, ed25519, invalid = _library()
    except MissingDependency:
        if public is not None:
            raise
        return [], [f"{SIGNATURE}: not checked: the extra sign is not installed."]
    signed = read_json(file)
    signature = signed.pop("signature", None)
    try:
        raw = base64.b64decode(str(signed["public_key"]), validate=True)
        key = ed25519.Ed25519PublicKey.from_public_bytes(raw)
        key.verify(base64.b64decode(str(signature), validate=True), canonical(signed))
    except (KeyError, ValueError, invalid):
        return [changed(SIGNATURE, "the signature does not fit what it signs")], []
    folder = RunFolder.open(path)
    if signed.get("run") != folder.id or signed.get("head") != head(folder.record()):
        return [changed(SIGNATURE, "another record was signed: the run changed since, or the file was moved")], []
    then, now = signed.get("reports", {REPORT: signed.get("report_sha256")}), _reports(path)  # older ones sign one
    then = {name: sha256 for name, sha256 in then.items() if sha256} if isinstance(then, dict) else {}
    if other := [name for name, sha256 in then.items() if now.get(name) != sha256]:
        return [changed(SIGNATURE, f"another {other[0]} was signed")], []
    unsigned = ", ".join(name for name in now if name not in then)
    added = f"{unsigned}: not checked: the signature does not cover it. Sign again with --sign." if unsigned else ""
    name = hashlib.sha256(raw).hexdigest()
    if public is not None:
        try:
            wanted = serialization.load_pem_public_key(reading.content(public, largest=reading.SETTINGS))
        except (OSError, ValueError) as error:
            raise ConfigError(f"--signed-by {public}: no public key in PEM form: {error}") from None
        if not isinstance(wanted, ed25519.Ed25519PublicKey) or wanted.public_bytes_raw() != raw:
            return [changed(SIGNATURE, f"it was signed by another key (SHA-256 {name})")], []
        if added:
            return [changed(SIGNATURE, added)], []
        return [], [f"{SIGNATURE}: the head was signed {signed.get('signed')} by the key in {public}."]
    whose = f"{SIGNATURE}: signed {signed.get('signed')} by the key with SHA-256 {name}; whose that is, is not checked."
    return [], [whose, *filter(None, [added])]


def _reports(path: Path) -> dict[str, str]:
    """SHA-256 of every report in a run folder, by file name."""
    return {file.name: file_sha256(file) for file in sorted(path.glob("report*")) if file.is_file()}


def _library() -> tuple[Any, Any, Any]:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingDependency("a signature", "cryptography", extra="sign") from error
    return serialization, ed25519, InvalidSignature


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
