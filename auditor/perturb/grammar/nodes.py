"""Reads the YAML tree of a grammar file; nothing is constructed but text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from auditor.core.errors import DataFileError

if TYPE_CHECKING:
    from yaml.nodes import Node

DEEPEST = 20  # nested fields
HELP = "The format: audit grammar format"


def compose(text: str, path: Path) -> Node:
    """The YAML node tree of ``text``; aliases, deep nesting and repeated fields are refused."""
    import yaml

    def line_of(loader: Any) -> int:
        return int(loader.peek_event().start_mark.line) + 1

    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Node | None, index: int) -> Node | None:
            if self.check_event(yaml.events.AliasEvent):
                line = line_of(self)
                raise DataFileError(f"{path}, line {line}: aliases (*name) are not read. Write it out.")
            self.depth += 1
            if self.depth > DEEPEST:
                line = line_of(self)
                raise DataFileError(f"{path}, line {line}: more than {DEEPEST} fields inside each other.")
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    try:
        node = Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f", line {mark.line + 1}" if mark else ""
        raise DataFileError(f"{path}{at}: this is no valid YAML: {error.problem or error.context}.") from None
    except yaml.YAMLError as error:
        raise DataFileError(f"{path}: this is no valid YAML: {' '.join(str(error).split())}.") from None
    if node is None:
        raise DataFileError(f"{path}: the file is empty. {HELP}")
    return node
