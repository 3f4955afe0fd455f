"""A signature over the head of a run, with an Ed25519 key: ``signature.json`` in the run folder.

Who has the key vouches that a run had this head when it was signed. Keys come from elsewhere, such as
``openssl genpkey -algorithm ed25519 -out key.pem`` and ``openssl pkey -in key.pem -pubout -out public.pem``.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from auditor.core import reading
from auditor.core.errors import ConfigError, MissingDependency
from auditor.core.record import head
from auditor.core.types import canonical
from auditor.store.folder import REPORT, RunFolder
from auditor.store.integrity import Problem, changed
from auditor.store.journal import read_json, write_json

FILE = "signature.json"


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
        "public_key": _text(private.public_key().public_bytes_raw()),
    }
    write_json(folder.path / FILE, signed | {"signature": _text(private.sign(canonical(signed)))})
    return folder.path / FILE


def check(path: Path, public: Path | None) -> tuple[list[Problem], list[str]]:
    """What is wrong with the signature of a run, and what is said of it.

    ``public`` is the key that must have signed it; None: whichever did is named.
    """
    file = path / FILE
    if not file.is_file():
        if public is None:
            return [], []
        return [Problem(FILE, None, "missing", "there is no signature, and --signed-by asks for one")], []
    try:
        serialization, ed25519, invalid = _library()
    except MissingDependency:
        if public is not None:
            raise
        return [], [f"{FILE}: not checked: the extra sign is not installed."]
    signed = read_json(file)
    signature = signed.pop("signature", None)
    try:
        raw = base64.b64decode(str(signed["public_key"]), validate=True)
        key = ed25519.Ed25519PublicKey.from_public_bytes(raw)
        key.verify(base64.b64decode(str(signature), validate=True), canonical(signed))
    except (KeyError, ValueError, invalid):
        return [changed(FILE, "the signature does not fit what it signs")], []
    folder = RunFolder.open(path)
    if signed.get("run") != folder.id or signed.get("head") != head(folder.record()):
        return [changed(FILE, "another record was signed: the run changed since, or the file was moved")], []
    then, now = signed.get("reports", {REPORT: signed.get("report_sha256")}), _reports(path)  # older ones sign one
    then = {name: sha256 for name, sha256 in then.items() if sha256} if isinstance(then, dict) else {}
    if other := [name for name, sha256 in then.items() if now.get(name) != sha256]:
        return [changed(FILE, f"another {other[0]} was signed")], []
    unsigned = ", ".join(name for name in now if name not in then)
    added = f"{unsigned}: not checked: the signature does not cover it. Sign again with --sign." if unsigned else ""
    name = hashlib.sha256(raw).hexdigest()
    if public is not None:
        try:
            wanted = serialization.load_pem_public_key(reading.content(public, largest=reading.SETTINGS))
        except (OSError, ValueError) as error:
            raise ConfigError(f"--signed-by {public}: no public key in PEM form: {error}") from None
        if not isinstance(wanted, ed25519.Ed25519PublicKey) or wanted.public_bytes_raw() != raw:
            return [changed(FILE, f"it was signed by another key (SHA-256 {name})")], []
        if added:
            return [changed(FILE, added)], []
        return [], [f"{FILE}: the head was signed {signed.get('signed')} by the key in {public}."]
    whose = f"{FILE}: signed {signed.get('signed')} by the key with SHA-256 {name}; whose that is, is not checked."
    return [], [whose, *filter(None, [added])]


def _reports(path: Path) -> dict[str, str]:
    """SHA-256 of every report in a run folder, by file name."""
    return {file.name: reading.sha256(file) for file in sorted(path.glob("report*")) if file.is_file()}


def _library() -> tuple[Any, Any, Any]:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingDependency("a signature", "cryptography", extra="sign") from error
    return serialization, ed25519, InvalidSignature


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
