"""Tasks: what a model is asked, and how its answers are read."""

from __future__ import annotations

from auditor.tasks.answers import Reader
from auditor.tasks.given import fields as fields_given
from auditor.tasks.given import read as read_given
from auditor.tasks.given import rows as rows_given
from auditor.tasks.kinds.base import Kind
from auditor.tasks.load import available, load
from auditor.tasks.seeds import SeedFile
from auditor.tasks.seeds import read as read_seeds
from auditor.tasks.task import Example, Format, Task
from auditor.tasks.template import template

__all__ = [
    "Example",
    "Format",
    "Kind",
    "Reader",
    "SeedFile",
    "Task",
    "available",
    "fields_given",
    "load",
    "read_given",
    "read_seeds",
    "rows_given",
    "template",
]
