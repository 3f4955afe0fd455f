"""What tests with servers and processes share."""

from __future__ import annotations

import pytest
from nursery import Nursery


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Nursery:
    """Start audits that share a cache."""
    return Nursery(tmp_path_factory.mktemp("nursery"))
