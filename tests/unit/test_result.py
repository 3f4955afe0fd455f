"""The library's front door: one async implementation, a sync face, silence, and reports as values."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from auditor import Result, aaudit, audit, load
from auditor.core.errors import MissingDependency, UserError
from auditor.run.result import resume

TEXTS = ["He plays a kind man.", "The British actor told his wife about it.", "She is the heroine."]


def flips(text: str) -> str:
    return "negative" if "She" in text or "her " in text else "positive"


flips.deterministic = True  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def result() -> Result:
    return audit("sentiment", model=flips, data=TEXTS, attributes=("gender",))


def test_without_pandas_the_error_prints_the_install_line(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependency, match=r'pip install "llm-bias-auditor\[pandas\]"'):
        result.to_pandas()


def test_it_works_inside_a_running_event_loop_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    async def notebook() -> tuple[Result, Result]:
        return audit("sentiment", model=flips, data=TEXTS), await aaudit("sentiment", model=flips, data=TEXTS)

    one, other = asyncio.run(notebook())
    assert one.record["estimates"] == other.record["estimates"]
    assert capsys.readouterr() == ("", "")


def test_several_models_make_one_comparison(tmp_path: Path) -> None:
    both = audit("sentiment", model=["vader", flips], data=TEXTS, attributes=("gender",), out=tmp_path)
    assert len(both.record["models"]) == 2
    assert {f.model for f in both.findings} == set(both.record["models"])
    assert both.path is not None
    again = load(both.path)
    assert again.record == both.record
    assert again.verdicts == both.verdicts
    assert again.to_html() == both.to_html()


def test_a_wrong_option_is_named() -> None:
    with pytest.raises(UserError, match="no option 'replicate'"):
        audit("sentiment", model=flips, data=TEXTS, replicate=3)


def test_a_run_over_texts_from_python_can_be_gone_on_with(tmp_path: Path) -> None:
    """The texts stand in no file but the run folder's; odd characters come back as they were."""
    texts = ["The actress was great, said the woman.", "Her father \ud800 is a dull man.", "A man\u2028and a woman."]
    whole = audit("sentiment", model="reviews", data=texts, out=tmp_path / "whole", cache=False)
    cut = audit("sentiment", model="reviews", data=texts, out=tmp_path / "cut", cache=False, max_calls=4)
    assert (whole.complete, cut.complete) == (True, False)
    assert cut.path is not None
    done = resume(cut.path, limits={"max_calls": 1000})
    assert done.complete
    assert done.record["counts"]["calls"] == whole.record["counts"]["calls"]
    assert done.record["estimates"] == whole.record["estimates"]
