"""Every example in a docstring says what it prints."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import auditor

NAMES = [m.name for m in pkgutil.walk_packages(auditor.__path__, "auditor.") if "__main__" not in m.name]


@pytest.mark.parametrize("name", ["auditor", *NAMES])
def test_examples_in_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0, f"{found.failed} of {found.attempted} examples of {name}"
