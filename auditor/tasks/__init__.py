"""Tasks: what a model is asked, and how its answers are read."""

from __future__ import annotations

from auditor.tasks.answers import Reader
from auditor.tasks.kinds import Kind, template
from auditor.tasks.load import available, load, of_plan
from auditor.tasks.seeds import SeedFile, read_given
from auditor.tasks.seeds import read as read_seeds
from auditor.tasks.task import Task

__all__ = ["Kind", "Reader", "SeedFile", "Task", "available", "load", "of_plan", "read_given", "read_seeds", "template"]
