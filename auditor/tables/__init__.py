"""Searches over rows of tables: data and schema, a model of rows, a method, the record."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from auditor.tables.row_data import infer_schema, load_task
    from auditor.tables.tabular_plan import Method, TabularPlan
    from auditor.tables.tabular_run import TabularRun, audit_table, resume_table

__all__ = ["Method", "TabularPlan", "TabularRun", "audit_table", "infer_schema", "load_task", "resume_table"]
_HOME = dict.fromkeys(("Method", "TabularPlan"), "tabular_plan")
_HOME |= dict.fromkeys(("TabularRun", "audit_table", "resume_table"), "tabular_run")
_HOME |= dict.fromkeys(("infer_schema", "load_task"), "row_data")


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(name)
    return getattr(import_module(f"auditor.tables.{_HOME[name]}"), name)
