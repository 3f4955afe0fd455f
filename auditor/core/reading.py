"""Files, read in one way everywhere: the project's own, and those that users name.

``prompts/``, ``dictionaries/`` and ``grammars/`` stand at the top of a checkout and under ``auditor/_data/`` in a
wheel; ``auditor/embedded/`` (parser, weights, seed texts) is in both. What a user names is a regular file, up to a
size. JSON, TOML and YAML of others are bounded in time and memory; what cannot be read is one kind of error, also where
it is nested without end. YAML comes with the line of every field, and without silent surprises. CSV has one header
line, and commas, semicolons or tabs; text files are in UTF-8, data also gzipped.

Files that a person writes (TOML, YAML, JSON lines) are read into a pydantic model. What is wrong is one
`DataFileError`, which names file, line and field, and offers the nearest name.
"""

from __future__ import annotations

import csv
import difflib
import errno
import gzip
import hashlib
import io
import json
import os
import re
import stat
import tomllib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from auditor.core.errors import DataFileError
from auditor.core.shown import plural, quoted

if TYPE_CHECKING:
    import yaml
    from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound="BaseModel")
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


def shipped_names(kind: str) -> list[str]:
    """The stems of the YAML files of one kind, sorted."""
    return sorted(p.stem for p in shipped_folder(kind).glob("*.yaml"))


LARGEST = 1 << 30  # bytes of data; every copy of them takes as much memory again
SETTINGS = 4_000_000  # bytes of what a person writes: plans, waivers, schemas, dictionaries

_KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))
_CHUNK = 1 << 20


def content(path: Path | str, *, largest: int = LARGEST) -> bytes:
    """The bytes of a file.

    Pipes, devices and sockets are a `DataFileError` before they are opened: they may wait or go on for ever, and cannot
    be read again on resume. So is a file of more than ``largest`` bytes. What is missing or a folder raises `OSError`.
    """
    check(path)
    data = bytearray()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            data += chunk
            if len(data) > largest:
                raise too_large(path, largest)
    return bytes(data)


def text(path: Path | str) -> str:
    """The text of a file in UTF-8; a byte order mark is dropped. See `content`; raises UnicodeDecodeError too."""
    return content(path, largest=SETTINGS).decode("utf-8-sig")


def sha256(path: Path | str) -> str:
    """The SHA-256 of a file of any size; see `content`."""
    check(path)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def near_files(path: Path) -> str:
    """Name files beside ``path`` that are spelled much like it, as a sentence; or nothing."""
    try:
        names = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
    except (OSError, ValueError):
        return ""
    near = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(str(path.parent / name) for name in near)}?" if near else ""


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


# -- JSON, TOML, YAML --------------------------------------------------------------------------------------------------


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


def toml_place(path: Path, text: str, key: str) -> str:
    """The file, and the line in which ``key`` begins where one is seen."""
    line = toml_line(text, key)
    return f"{path}, line {line}" if line else str(path)


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

    if text is None:
        text = read_text(path)
    # The fast loader has no bound on how deep fields are nested: it reads our own files alone.
    ours = any(Path(path).is_relative_to(shipped_folder(kind)) for kind in FOLDERS)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if ours else yaml.SafeLoader
    try:
        node: yaml.Node | None = loader(text).get_single_node()
        if node is None:
            return None
        _size(path, node, {})
        if lines is not None:
            _note(path, node, (), lines, set())
        return (yaml.BaseLoader if plain else yaml.SafeLoader)("").construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DataFileError(f"{path}{at}: this is not valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise DataFileError(f"{path}: this is not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise DataFileError(f"{path}: fields too deep inside each other; at most {DEEPEST} are read") from None
    except ValueError as error:
        raise DataFileError(f"{path}: a value in this file cannot be read: {error}") from None


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


# -- files read into a model -------------------------------------------------------------------------------------------

_ARMS = frozenset({"str", "int", "float", "constrained-str"})  # of unions, and all with a bracket


def checked(
    model: type[M], values: object, where: object, lines: Mapping[Where, int] | None = None, help: str = ""
) -> M:
    """Return ``values`` as ``model``; ``where`` names the file, ``help`` ends the message about a mistake.

    Examples
    --------
    >>> from pydantic import BaseModel
    >>> class Pair(BaseModel):
    ...     text: str
    >>> checked(Pair, {"txt": "a"}, "pairs.jsonl, line 2")
    Traceback (most recent call last):
    auditor.core.errors.DataFileError: pairs.jsonl, line 2: field text: this field is missing.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise DataFileError(_complaint(model, error, str(where), lines or {}, help)) from None


def place(path: object, lines: Mapping[Where, int], field: Where) -> str:
    """Return the file and the line of ``field``, or of the nearest field that holds it."""
    line = next((lines[field[:n]] for n in range(len(field), 0, -1) if field[:n] in lines), None)
    return f"{path}, line {line}" if line else str(path)


def load_toml(path: Path, model: type[M], help: str = "") -> tuple[M, dict[Where, int]]:
    """Return the content of a TOML file as ``model``, and the lines of its keys and of its ``[[tables]]``."""
    text = read_text(path)
    try:
        values = from_toml(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        line = at.group(1) if at else len(text.splitlines()) or 1
        raise DataFileError(f"{path}, line {line}: no valid TOML: {error}.") from error
    lines: dict[Where, int] = {(name,): toml_line(text, name) or 1 for name in values}
    for name in values:
        head = re.compile(rf"\s*\[\[\s*{re.escape(name)}\s*\]\]")
        heads = [number for number, line in enumerate(text.splitlines(), 1) if head.match(line)]
        lines |= {(name, n): number for n, number in enumerate(heads)}
    return checked(model, values, path, lines, help), lines


def load_lines(
    path: Path, model: type[M], help: str = "", *, largest: int = SETTINGS, missing: str = ""
) -> Iterator[tuple[int, M]]:
    """Yield each object of a file of JSON lines with its line; ``missing`` is said where there is no such file."""
    for number, line in enumerate(read_text(path, largest, missing=missing).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            values = from_json(line)
        except json.JSONDecodeError as error:
            raise DataFileError(f"{where}: no JSON ({error}). {help}".rstrip()) from None
        if not isinstance(values, dict):
            raise DataFileError(f"{where}: not an object. {help}".rstrip())
        yield number, checked(model, values, where, help=help)


def load_fields(
    path: Path, *, largest: int = SETTINGS, missing: str = "", empty: str = "", plain: bool = False
) -> tuple[dict[str, Any], dict[Where, int]]:
    """Return the fields of a YAML file and their lines; ``missing`` and ``empty`` say what to do about such a file.

    With ``plain`` every value is text: ``no`` and ``1`` are words.
    """
    lines: dict[Where, int] = {}
    raw = load_yaml(path, read_text(path, largest, missing=missing), lines=lines, plain=plain)
    if raw is None:
        raise DataFileError(f"{path}: the file is empty{empty}")
    if not isinstance(raw, dict):
        raise DataFileError(f"{path}: this file must be a mapping of fields")
    return raw, lines


def _complaint(
    model: type[BaseModel], error: ValidationError, where: str, lines: Mapping[Where, int], help: str
) -> str:
    """Say what is wrong with the first field that is, and how many more there are."""
    details = error.errors(include_url=False, include_context=False)
    # Unknown fields first: a misspelled name explains the "missing" one behind it.
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    known = model.model_fields
    loc = tuple(part for part in first["loc"] if not (isinstance(part, str) and (part in _ARMS or "[" in part)))
    message = first["msg"].removeprefix("Value error, ")
    field = ".".join(map(str, loc))
    text = "string" in message.casefold()
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(loc[-1]), sorted(known), n=1) if len(loc) == 1 else []
        message = "no such field" + (f"; did you mean {near[0]}?" if near else "")
    elif first["type"] == "missing":
        message = "this field is missing"
    elif isinstance(first["input"], bool) and text:
        message += "; YAML reads yes, no, on and off as true and false: put the word in quotes"
    elif isinstance(first["input"], int | float) and text:
        message += f'; put it in quotes: "{first["input"]}"'
    if not field and ": " in message and message.partition(":")[0] in known:
        field, _, message = message.partition(": ")
        loc = (field,)
    name = f"field {field}: " if field else ""
    more = f" ({plural(len(details) - 1, 'more problem')} in this file)" if len(details) > 1 else ""
    message = message.rstrip(".")
    end = "" if message.endswith("?") and not more else "."
    return f"{place(where, lines, loc)}: {name}{message}{more}{end} {help}".rstrip()


# -- data, and rows of CSV ---------------------------------------------------------------------------------------------


DELIMITERS = (",", ";", "\t")
SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs"}


class CsvTable(NamedTuple):
    """The header of a file, and an iterator over its records with the line that each begins in.

    ``columns`` are stripped, fields are not; ``rows`` can be walked once.
    """

    columns: tuple[str, ...]
    rows: Iterator[tuple[int, list[str]]]


def read_data(path: Path, *, what: str = "one CSV file", missing: str = "") -> bytes:
    """The bytes of a file that is not empty, as `read_bytes`; a folder: ``what`` is to be named."""
    raw = read_bytes(path, missing=missing, folder=f"; name {what}")
    if not raw.strip():
        raise DataFileError(f"{path}: the file is empty")
    return raw


def unpacked(path: Path, raw: bytes) -> str:
    """The text of a file in UTF-8; one that ends in ``.gz`` is unpacked first."""
    if path.suffix.lower() == ".gz" and raw.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(io.BytesIO(raw)) as file:
                raw = file.read(LARGEST + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise DataFileError(f"{path}: damaged gzip file: {error}") from None
        if len(raw) > LARGEST:
            raise too_large(f"{path}, unpacked", LARGEST)
    text = decoded(path, raw)
    if (at := text.find("\0")) >= 0:
        line = text.count("\n", 0, at) + 1
        raise DataFileError(f"{path}, line {line}: a zero byte; a binary file, or UTF-16 without its mark?")
    return text


def text_lines(text: str) -> Iterator[str]:
    """Lines by line feed (or carriage return) alone: U+2028 and its like may stand inside a text."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    return (line.removesuffix("\r") for line in text.removesuffix("\n").split("\n"))


def read_csv(path: Path, text: str, *, wanted: Sequence[str] = (), delimiters: Sequence[str] = DELIMITERS) -> CsvTable:
    """Header and records of a CSV text.

    The delimiter is the one that makes most of the ``wanted`` names columns, and of those the one that makes most
    columns. While the rows are walked, malformed quotation and records of another length than the header are a
    `DataFileError`.
    """
    # The limit is one for the whole process and guards nothing here: the text is in memory already.
    if csv.field_size_limit() <= len(text):
        csv.field_size_limit(len(text) + 1)
    first = next(text_lines(text), "")
    split = {d: [name.strip() for name in next(csv.reader([first], delimiter=d), [])] for d in delimiters}
    sign = max(delimiters, key=lambda d: (sum(name in split[d] for name in wanted), len(split[d])))
    rows = _records(path, text, sign)
    columns = tuple(name.strip() for name in next(rows, (0, []))[1])
    return CsvTable(columns, rows)


def distinct(path: Path, columns: Sequence[str], among: Sequence[str] | None = None) -> None:
    """Refuse a header in which a column has no name, or two have the same; ``among``: only these matter."""
    if among is None and "" in columns:
        place = columns.index("") + 1
        index = " (an index that a program wrote? In pandas: to_csv(…, index=False))" if place == 1 else ""
        raise DataFileError(f"{path}: column {place} of the header has no name{index}. Name or remove it")
    twice = [n for n in dict.fromkeys(columns) if columns.count(n) > 1 and (among is None or n in among)]
    if twice:
        places = {name: " and ".join(str(i) for i, n in enumerate(columns, 1) if n == name) for name in twice}
        listed = "; ".join(f"the column {name!r} more than once (columns {at})" for name, at in places.items())
        raise DataFileError(f"{path}: the header has {listed}. Rename or remove all but one")


def _records(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The header and the records, with the lines that they begin in; each as long as the header."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    start, width = 1, 0
    while True:
        try:
            record = next(reader, None)
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise DataFileError(
                    f"{path}, line {start}: a quotation mark in the record that begins here is never closed"
                ) from None
            raise DataFileError(
                f'{path}, line {start}: malformed CSV: {error} (inside a quoted field, write "" for ")'
            ) from None
        if record is None:
            return
        width = width or len(record)
        if record and len(record) != width:
            raise DataFileError(
                f"{path}, line {start}: {plural(len(record), 'field')} where the header has {width}; "
                f"a text with {SIGNS[delimiter]} needs quotation marks around it"
            )
        if record:
            yield start, record
        start = reader.line_num + 1
