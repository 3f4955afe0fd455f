"""YAML as it is written, with the line of every field, bounded in time and memory, and without silent surprises."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from auditor.core import userfile
from auditor.core.csvfile import near_files
from auditor.core.errors import DataFileError

if TYPE_CHECKING:
    import yaml

Where = tuple[str | int, ...]
MOST = 200_000  # fields, each counted as often as aliases and merges repeat it
DEEPEST = 60  # fields inside each other
LONGEST = 400  # digits of a number


def load(path: Path | str, text: str | None = None) -> object:
    """The plain data of a YAML file, None where it is empty; with ``text`` the path is but its name in messages.

    Raises `DataFileError`, with the line, where it cannot be read, is not UTF-8, no YAML, or would grow beyond bounds.
    """
    if text is None:
        text = read_text(path)
    return _parsed(path, text, None)


def read(path: Path, *, largest: int, missing: str = "") -> tuple[object, dict[Where, int]]:
    """The plain data of a file of at most ``largest`` bytes, and the line of each field: ``("input", "tag")`` to 12.

    Raises `DataFileError` as `load` does, and where a field stands there twice; for ``missing`` see `read_text`.
    """
    lines: dict[Where, int] = {}
    return _parsed(path, read_text(path, largest, missing=missing), lines), lines


def read_text(path: Path | str, largest: int = userfile.SETTINGS, *, missing: str = "") -> str:
    """The text of a file that a person wrote, of at most ``largest`` bytes.

    Raises `DataFileError` where it is missing (near misses are named, else ``missing`` is said), no regular file, too
    large or not UTF-8.
    """
    try:
        return userfile.text(path, largest=largest)
    except (FileNotFoundError, NotADirectoryError):
        raise DataFileError(f"{path}: there is no such file.{near_files(Path(path)) or missing}") from None
    except IsADirectoryError:
        raise DataFileError(f"{path}: this is a folder, not a file") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataFileError(f"{path}, line {line}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataFileError(f"{path}: cannot be read: {reason}") from None


def compose(path: Path | str, text: str) -> yaml.Node | None:
    """The node tree of ``text``, of which nothing was constructed yet; its size is bounded. Raises as `load` does."""
    import yaml

    try:
        node: yaml.Node | None = yaml.SafeLoader(text).get_single_node()
        if node is not None:
            _size(path, node, {})
    except yaml.MarkedYAMLError as error:
        raise _invalid(path, error) from None
    except yaml.YAMLError as error:
        raise DataFileError(f"{path}: this is no valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise DataFileError(f"{path}: fields too deep inside each other; at most {DEEPEST} are read") from None
    return node


def _parsed(path: Path | str, text: str, lines: dict[Where, int] | None) -> object:
    import yaml

    node = compose(path, text)
    if node is None:
        return None
    if lines is not None:
        _note(path, node, (), lines, set())
    try:
        return yaml.SafeLoader("").construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise _invalid(path, error) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DataFileError(f"{path}: a value in this file cannot be read: {error}") from None


def _invalid(path: Path | str, error: yaml.MarkedYAMLError) -> DataFileError:
    mark = error.problem_mark or error.context_mark
    at = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return DataFileError(f"{path}{at}: this is no valid YAML: {error.problem or error.context}")


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
                raise DataFileError(f"{path}, line {line}: the field {name} stands here and in line {lines[place]}")
            lines[place] = line
            _note(path, value, place, lines, seen)
    elif isinstance(node, yaml.SequenceNode):
        for i, item in enumerate(node.value):
            lines[(*where, i)] = item.start_mark.line + 1
            _note(path, item, (*where, i), lines, seen)
