"""Files, read in one way everywhere: the project's own, and those that users name.

``prompts/``, ``dictionaries/`` and ``grammars/`` stand at the top of a checkout and under ``auditor/_data/`` in a
wheel; ``auditor/embedded/`` (parser, weights, seed texts) is in both. What a user names is a regular file, up to a
size. JSON, TOML and YAML of others are bounded in time and memory; what cannot be read is one kind of error, also where
it is nested without end. YAML comes with the line of every field, and without silent surprises.
"""

from __future__ import annotations

import difflib
import errno
import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.core.errors import DataFileError
from auditor.core.shown import quoted

if TYPE_CHECKING:
    import yaml

PACKAGE = Path(__file__).resolve().parents[1]
FOLDERS = ("prompts", "dictionaries", "grammars", "embedded")


def shipped_folder(kind: str) -> Path:
    """The folder of one kind of data: ``prompts``, ``dictionaries``, ``grammars`` or ``embedded``."""
    if kind not in FOLDERS:
        raise ValueError(f"no data folder {kind!r}; one of {FOLDERS}")
    if kind == "embedded":
        return PACKAGE / "embedded"
    installed = PACKAGE / "_data" / kind
    return installed if installed.is_dir() else PACKAGE.parent / kind


def shipped(kind: str, *parts: str) -> Path:
    """The path of one data file; it need not exist."""
    return shipped_folder(kind).joinpath(*parts)


def shipped_names(kind: str, suffix: str = ".yaml") -> list[str]:
    """The stems of the files of one kind, sorted."""
    return sorted(p.stem for p in shipped_folder(kind).glob(f"*{suffix}"))


LARGEST = 1 << 30  # bytes of data; every copy of them takes as much memory again
SETTINGS = 4_000_000  # bytes of what a person writes: plans, waivers, schemas, dictionaries

_KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))
_CHUNK = 1 << 20


def content(path: Path | str, *, largest: int = LARGEST) -> bytes:
    """The bytes of a file.

    Pipes, devices and sockets are a `DataFileError` before they are opened: they may wait or go on for ever, and cannot
    be read again on resume. So is a file of more than ``largest`` bytes. What is missing or a folder raises `OSError`.
    """
    return b"".join(_chunks(path, largest))


def text(path: Path | str, *, largest: int = SETTINGS) -> str:
    """The text of a file in UTF-8; a byte order mark is dropped. See `content`; raises UnicodeDecodeError too."""
    return content(path, largest=largest).decode("utf-8-sig")


def sha256(path: Path | str) -> str:
    """The SHA-256 of a file of any size; see `content`."""
    total = hashlib.sha256()
    for chunk in _chunks(path, None):
        total.update(chunk)
    return total.hexdigest()


def too_large(where: Path | str, largest: int) -> DataFileError:
    """The error about a file of more than ``largest`` bytes, packed ones unpacked."""
    return DataFileError(f"{where}: larger than {largest:,} bytes, the most that is read of such a file")


def check(path: Path | str) -> None:
    """Refuse what is no regular file, before it is opened; raises as `content` does."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        kind = next((kind for test, kind in _KINDS if test(mode)), "no file")
        raise DataFileError(f"{path}: this is {kind}, not a regular file; write what it gives into a file first")


def _chunks(path: Path | str, largest: int | None) -> Iterator[bytes]:
    check(path)
    left = largest
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            if left is not None:
                left -= len(chunk)
                if left < 0:
                    raise too_large(path, largest or 0)
            yield chunk


def near_files(path: Path) -> str:
    """Name files beside ``path`` that are spelled much like it, as a sentence; or nothing."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
    except (OSError, ValueError):
        return ""
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(str(path.parent / name) for name in near)}?" if near else ""


DEEP = "fields too deep inside each other"


def from_json(text: str | bytes, *, deepest: int | None = None) -> Any:
    """The value that a JSON text holds; at most ``deepest`` lists and objects inside each other, where that is said.

    Raises
    ------
    json.JSONDecodeError
        It is not JSON, is nested too deeply, or holds a number of thousands of digits.
    UnicodeDecodeError
        Bytes that are not UTF-8. It is a ValueError too.
    """
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise json.JSONDecodeError(DEEP, "", 0) from None
    except ValueError as error:
        raise json.JSONDecodeError(str(error).partition(";")[0], "", 0) from None
    if deepest is not None and _deeper(value, deepest):
        raise json.JSONDecodeError(DEEP, "", 0)
    return value


def _deeper(value: object, most: int) -> bool:
    level: list[Any] = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        inside = chain.from_iterable(one.values() if isinstance(one, dict) else one for one in level)
        level = [item for item in inside if isinstance(item, dict | list)]
    return bool(level)


def from_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; `tomllib.TOMLDecodeError` also where it is nested too deeply, or a number too long."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError(DEEP) from None
    except ValueError as error:
        raise tomllib.TOMLDecodeError(str(error).partition(";")[0]) from None


def toml_line(text: str, key: str) -> int | None:
    """The line of a TOML text, from 1, in which ``key``, or the table of that name, begins; None where none is seen."""
    written = re.compile(rf"^\s*\[*\s*([\"']?){re.escape(key)}\1\s*[=.\]]")
    return next((n for n, line in enumerate(text.splitlines(), 1) if written.match(line)), None)


Where = tuple[str | int, ...]
MOST = 200_000  # fields, each counted as often as aliases and merges repeat it
DEEPEST = 60  # fields inside each other
LONGEST = 400  # digits of a number


def load_yaml(
    path: Path | str, text: str | None = None, *, lines: dict[Where, int] | None = None, plain: bool = False
) -> object:
    """The plain data of a YAML file, None where it is empty; with ``text`` the path is but its name in messages.

    ``lines`` gets the line of each field (``("input", "tag")`` to 12), and then no field may be there twice. With
    ``plain`` every value is text.

    Raises `DataFileError`, with the line, where it cannot be read, is not UTF-8, no YAML, or would grow beyond bounds.
    """
    import yaml

    node = _composed(path, read_text(path) if text is None else text)
    if node is None:
        return None
    if lines is not None:
        _note(path, node, (), lines, set())
    try:
        return (yaml.BaseLoader if plain else yaml.SafeLoader)("").construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise _invalid(path, error) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DataFileError(f"{path}: a value in this file cannot be read: {error}") from None


def read_text(path: Path | str, largest: int = SETTINGS, *, missing: str = "") -> str:
    """The text of a file that a person wrote, of at most ``largest`` bytes; `DataFileError` as of `read_bytes`."""
    return decoded(path, read_bytes(path, largest, missing=missing))


def read_bytes(path: Path | str, largest: int = LARGEST, *, missing: str = "", folder: str = ", not a file") -> bytes:
    """The bytes of a file of at most ``largest`` bytes.

    Raises `DataFileError` where it is missing (near misses are named, else ``missing`` is said), no regular file, too
    large or unreadable; ``folder`` goes on with what is said of a folder.
    """
    try:
        return content(path, largest=largest)
    except (FileNotFoundError, NotADirectoryError):
        raise DataFileError(f"{path}: there is no such file.{near_files(Path(path)) or missing}") from None
    except IsADirectoryError:
        raise DataFileError(f"{path}: this is a folder{folder}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataFileError(f"{path}: cannot be read: {reason}") from None


def decoded(path: Path | str, raw: bytes) -> str:
    """Return ``raw``, the content of ``path``, as text; `DataFileError` with line and byte where it is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start, name = error.start, Path(path).name
        line, column = raw.count(b"\n", 0, start) + 1, start - raw.rfind(b"\n", 0, start)
        encoding = "UTF-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "WINDOWS-1252"
        raise DataFileError(
            f"{path}, line {line}: byte {start} is not UTF-8 (0x{raw[start]:02x}, byte {column} of the line). Unpack a "
            "compressed file; convert a text in another encoding.",
            below=f"Run: iconv -f {encoding} -t UTF-8 {quoted(name)} > {quoted('utf8' + Path(name).suffix)}",
        ) from None


def _composed(path: Path | str, text: str) -> yaml.Node | None:
    """The node tree of ``text``, nothing constructed yet; its size is bounded. Raises as `load_yaml` does."""
    import yaml

    # The fast loader has no bound on how deep fields are nested: it reads our own files alone.
    ours = any(Path(path).is_relative_to(shipped_folder(kind)) for kind in FOLDERS)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if ours else yaml.SafeLoader
    try:
        node: yaml.Node | None = loader(text).get_single_node()
        if node is not None:
            _size(path, node, {})
    except yaml.MarkedYAMLError as error:
        raise _invalid(path, error) from None
    except yaml.YAMLError as error:
        raise DataFileError(f"{path}: this is not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise DataFileError(f"{path}: fields too deep inside each other; at most {DEEPEST} are read") from None
    return node


def _invalid(path: Path | str, error: yaml.MarkedYAMLError) -> DataFileError:
    mark = error.problem_mark or error.context_mark
    at = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return DataFileError(f"{path}{at}: this is not valid YAML: {error.problem or error.context}")


def _size(path: Path | str, node: yaml.Node, sizes: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """How many fields a node holds, and how deep, if every alias (``*name``) and merge (``<<``) were written out.

    Each node is visited once; more than `MOST` fields, or one that holds itself, are refused.
    """
    import yaml

    at = f"{path}, line {node.start_mark.line + 1}"
    if id(node) in sizes:
        known = sizes[id(node)]
        if known is None:
            raise DataFileError(f"{at}: this field holds itself")
        return known
    if isinstance(node, yaml.ScalarNode):
        if node.tag.endswith((":int", ":float")) and len(node.value) > LONGEST:
            raise DataFileError(f"{at}: a number of more than {LONGEST} characters")
        return 1, 1
    sizes[id(node)] = None
    parts = chain.from_iterable(node.value) if isinstance(node, yaml.MappingNode) else node.value
    below = [_size(path, part, sizes) for part in parts]
    fields, depth = 1 + sum(n for n, _ in below), 1 + max((deep for _, deep in below), default=0)
    if fields > MOST:
        raise DataFileError(f"{at}: more than {MOST:,} fields, counting each as often as aliases (*name) repeat it")
    if depth > DEEPEST:
        raise DataFileError(f"{at}: more than {DEEPEST} fields inside each other")
    sizes[id(node)] = fields, depth
    return fields, depth


def _note(path: Path | str, node: yaml.Node, where: Where, lines: dict[Where, int], seen: set[int]) -> None:
    """Note the line of every field. A node that an alias repeats is walked once."""
    import yaml

    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            place, line = (*where, key.value), key.start_mark.line + 1
            if place in lines:
                name = ".".join(map(str, place))
                raise DataFileError(f"{path}, line {line}: the field {name} is here and in line {lines[place]}")
            lines[place] = line
            _note(path, value, place, lines, seen)
    elif isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            lines[(*where, i)] = item.start_mark.line + 1
            _note(path, item, (*where, i), lines, seen)
