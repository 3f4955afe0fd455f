"""The run record itself, in one canonical form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from auditor.core.protocols import Renderer


class JsonReport(Renderer):
    r"""``run.json`` on stdout: sorted keys, two spaces, ASCII only.

    Non-ASCII characters and controls are escaped, so that no text from a model acts on a terminal.

    Examples
    --------
    >>> print(JsonReport().render({"b": 1, "a": "é"}), end="")
    {
      "a": "\u00e9",
      "b": 1
    }
    """

    name = "json.v1"
    suffix = ".json"

    def render(self, record: Mapping[str, object], evidence: Any = None) -> str:
        """Write the record as JSON text that ends in a line break.

        Raises
        ------
        ValueError
            A number is not finite: missing values are null with a reason.
        """
        return json.dumps(record, sort_keys=True, allow_nan=False, indent=2, default=_plain) + "\n"


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")
