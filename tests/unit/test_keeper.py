"""A program that was started as a model ends with the audit, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from auditor.models import program as keeper

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not keeper.GROUPS, reason="no process groups on this system")]

# Answers one line, then ignores the end of its input and what can be ignored, as does what it started.
STUBBORN = """
import json, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
open("pids", "w").write(f"{__import__('os').getpid()} {child.pid} ")
row = json.loads(sys.stdin.readline())
print(json.dumps({"id": row["id"], "output": "negative"}), flush=True)
time.sleep(600)
"""
TEXTS = """
import asyncio, sys, time
from auditor.models.exec import Exec
from auditor.core.types import Prompt, Request
async def go():
    model = Exec(f"{sys.executable} stubborn.py")
    print(await model.generate([Request(prompt=Prompt(format="bare", text="a"), replicate=0, variant_id="v")]), flush=True)
    time.sleep(600)
asyncio.run(go())
"""
ROWS = """
import sys, time
import numpy as np
from auditor.models.row_models import RowProgram
model = RowProgram(f"{sys.executable} stubborn.py", ["a"])
print(model.predict(np.array([[1]], dtype=object)), flush=True)
time.sleep(600)
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if sys.platform == "linux":
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return True


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill -9", "SIGTERM"])
@pytest.mark.parametrize("script", [TEXTS, ROWS], ids=["texts", "rows"])
def test_a_stubborn_program_ends_with_the_audit(tmp_path: Path, script: str, number: signal.Signals) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as audit:
        assert audit.stdout is not None
        assert "negative" in audit.stdout.readline()
        pids = list(map(int, (tmp_path / "pids").read_text().split()))
        assert len(pids) == 2
        assert all(map(alive, pids))
        audit.send_signal(number)
        audit.wait(30)
        until = time.monotonic() + 60
        while left := [pid for pid in pids if alive(pid)]:
            if time.monotonic() > until:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                raise AssertionError("a program outlived the audit")
            time.sleep(0.05)


def test_what_was_released_is_let_be() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as child:
        one = keeper.Keeper(child.pid)
        one.release()
        one.release()
        time.sleep(0.2)
        assert child.poll() is None
        child.communicate(b"\n")
        assert child.returncode == 0
