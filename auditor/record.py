"""From a finished loop to the run record (``run.json``): estimates, controls, findings, provenance."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from auditor._version import __version__
from auditor.types import FORMAT_VERSION

if TYPE_CHECKING:
    from auditor.pipeline import Loop, Tally
