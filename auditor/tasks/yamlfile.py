"""YAML as it is written, with the line of every field, and without silent surprises."""

from __future__ import annotations

from pathlib import Path

from auditor.csvfile import near_files
from auditor.errors import DataFileError

Where = tuple[str | int, ...]


def read(path: Path, *, largest: int) -> tuple[object, dict[Where, int]]:
    """Parse a YAML file.

    Parameters
    ----------
    path : Path
        The file.
    largest : int
        The size in bytes up to which it is read.

    Returns
    -------
    value : object
        Plain data.
    lines : dict
        The 1-based line of each field: ``("formats", "plain")`` to 12.

    Raises
    ------
    DataFileError
        The file is missing, too large, not UTF-8, no YAML, or names a field twice.
    """
    import yaml

    text = _text(path, largest)
    lines: dict[Where, int] = {}
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            raise DataFileError(f"{path}: the file is empty; `audit tasks new` writes one to start from")
        _walk(path, node, (), lines)
        value: object = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise DataFileError(f"{path}{at}: this is no valid YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise DataFileError(f"{path}: this is no valid YAML: {reason}") from None
    except (RecursionError, ValueError) as error:
        raise DataFileError(f"{path}: a value in this file cannot be read: {error}") from None
    return value, lines


def _text(path: Path, largest: int) -> str:
    try:
        if path.is_dir():
            raise DataFileError(f"{path}: this is a folder, not a task file")
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        further = near_files(path) or (
            " The tasks that come with the tool: audit tasks list. A file of your own: audit tasks new NAME"
        )
        raise DataFileError(f"{path}: no such task file.{further}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataFileError(f"{path}: cannot be read: {reason}") from None
    if len(raw) > largest:
        raise DataFileError(f"{path}: {len(raw)} bytes; a task file has at most {largest}")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataFileError(
            f"{path}, line {line}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from None


def _walk(path: Path, root: object, start: Where, lines: dict[Where, int]) -> None:
    """Note the line of every field. A node that an alias repeats is walked once."""
    import yaml

    todo: list[tuple[object, Where]] = [(root, start)]
    seen: set[int] = set()
    while todo:
        node, where = todo.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                place = (*where, key.value)
                line = key.start_mark.line + 1
                if place in lines:
                    name = ".".join(str(part) for part in place)
                    raise DataFileError(
                        f"{path}, line {line}: the field {name} stands here and in line {lines[place]}"
                    )
                lines[place] = line
                todo.append((value, place))
        elif isinstance(node, yaml.SequenceNode):
            for i, item in enumerate(node.value):
                lines[(*where, i)] = item.start_mark.line + 1
                todo.append((item, (*where, i)))
