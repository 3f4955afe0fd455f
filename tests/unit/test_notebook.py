"""The notebook of examples/ runs: a data frame goes in, claims come out as a data frame, and the page is shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "quickstart.ipynb"


def shown(code: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last line, as a notebook shows it."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names) if last else None


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas", reason="needs the extra pandas")
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], {"id" in cell for cell in notebook["cells"]}) == (4, {True})
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {"__name__": "notebook"}
    reviews, result, claims, answers = [shown(cell, names) for cell in cells]
    assert list(reviews.columns) == ["review"]
    assert isinstance(claims, pandas.DataFrame)
    assert set(claims["attribute"]) == {"gender"}
    assert {"gender"} <= set(answers["attributes"])
    assert result._repr_html_().lstrip().startswith("<iframe")
