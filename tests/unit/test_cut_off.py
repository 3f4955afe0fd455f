"""Several models are asked at once: whatever ends one of them, all that came is in the journal, and whole."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor.core.errors import PluginError
from auditor.core.plan import Plan
from auditor.core.types import SourceText
from auditor.models.python import PythonFunction
from auditor.run.audit import plan_record, run_audit
from auditor.run.preparation import prepare
from auditor.store.folder import RunFolder
from auditor.store.integrity import verify_folder

TEXTS = [f"The woman in row {n} left." for n in range(24)]


class Counted:
    """An async function that lets so many calls through and holds the others, which end some turns after they must."""

    deterministic = True

    def __init__(self, through: int, turns: int = 200) -> None:
        self.through, self.turns, self.calls = through, turns, 0

    async def __call__(self, text: str) -> str:
        self.calls += 1
        if self.calls > self.through:
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                for _ in range(self.turns):
                    await asyncio.sleep(0)
                raise
        return "positive"


def parts_of(root: Path, *models: Any) -> Any:
    plan = Plan(task="sentiment", out=str(root), attributes=("gender",), cache=False, concurrency=1)
    seeds = [SourceText(id=f"t{n}", text=text) for n, text in enumerate(TEXTS)]
    return prepare(plan, models=models, seeds=seeds)


def ended(root: Path, *models: Any, error: type[BaseException], cancel: Callable[[], bool]) -> dict[str, int]:
    """What is in the journal of a run that an error or ``cancel`` ended; it is whole, and nothing was left behind."""
    unhandled: list[Any] = []

    async def go() -> Path:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))
        parts = parts_of(root, *models)
        with RunFolder.create(root, plan_record(parts)) as folder:
            task = asyncio.create_task(run_audit(parts, folder))
            while not cancel() and not task.done():
                await asyncio.sleep(0.001)
            task.cancel()
            with pytest.raises(error):
                await task
            return folder.path

    path = asyncio.run(go())
    assert verify_folder(path) == []
    assert unhandled == []
    return Counter(json.loads(line)["model"] for line in (path / "responses.jsonl").read_bytes().splitlines())


def test_an_interrupt_loses_no_answer_of_a_model_that_is_slow_to_end(tmp_path: Path) -> None:
    quick, slow = Counted(16, turns=0), Counted(16)
    models = [PythonFunction(one, name=name) for one, name in ((quick, "quick"), (slow, "slow"))]
    found = ended(tmp_path, *models, error=asyncio.CancelledError, cancel=lambda: min(quick.calls, slow.calls) > 16)
    assert found == {"quick": 16, "slow": 16}


def test_an_error_of_one_model_loses_no_answer_of_another(tmp_path: Path) -> None:
    slow = Counted(16)  # the texts of the control

    class Broken(PythonFunction):
        async def generate(self, batch: Any) -> Any:
            if batch[0].variant_id.startswith("control."):
                return await super().generate(batch)
            while slow.calls <= 16:
                await asyncio.sleep(0.001)
            raise PluginError("broken")

    models = Broken(Counted(16), name="broken"), PythonFunction(slow, name="slow")
    assert ended(tmp_path, *models, error=PluginError, cancel=lambda: False) == {"broken": 16, "slow": 16}
