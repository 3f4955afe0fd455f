"""Every example in a docstring says what it prints."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import auditor

NAMES = ["auditor"] + [m.name for m in pkgutil.walk_packages(auditor.__path__, "auditor.") if "__main__" not in m.name]


def test_examples_in_docstrings() -> None:
    assert len(NAMES) > 200
    found = {name: doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS) for name in NAMES}
    assert sum(told.attempted for told in found.values()) > 100
    assert {name: told for name, told in found.items() if told.failed} == {}
