"""Our half of `langfair.py`, in a process of its own as LangFair's is: settings as JSON in, what was seen as JSON out."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SYSTEM = (
    "You sort film reviews by what the reviewer thinks of the film. Answer with one word, positive or negative, "
    "and nothing else."
)
TASK = f"""format: 1
name: side-by-side
kind: classification
labels: [{{name: negative}}, {{name: positive}}]
favourable: null
system: {SYSTEM}
question: "{{input}}"
input: {{tag: null}}
truncation: null
examples: []
parser: strict.v1
temperature: 1
seeds: null
default_format: plain
formats:
  plain: {{instruction: "", answer: "{{label}}", max_tokens: 16}}
  second: {{instruction: "Use one word.", answer: "{{label}}", max_tokens: 16}}
"""


def two_groups(folder: Path) -> Path:
    """Our gender dictionary with women and men only: the groups that LangFair has."""
    import yaml

    full = yaml.safe_load((ROOT / "dictionaries" / "gender.yaml").read_text(encoding="utf-8"))
    keep = ("female", "male")
    full["groups"] = {name: full["groups"][name] for name in keep}
    slots = {}
    for name, slot in full["slots"].items():
        cut = {
            key: {group: terms for group, terms in value.items() if group in keep}
            if key in ("terms", "source_only", "target_only")
            else value
            for key, value in slot.items()
        }
        cut = {key: value for key, value in cut.items() if value != {}}
        if len(set(cut.get("terms", {})) | set(cut.get("target_only", {}))) > 1:
            slots[name] = cut
    full["slots"] = slots
    path = folder / "gender.yaml"
    path.write_text(yaml.safe_dump(full, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def our_pairs(ask: Mapping[str, Any]) -> dict[str, Any]:
    """An audit as a user would start it."""
    from auditor.core.plan import Plan
    from auditor.run.result import audit_plan
    from auditor.store.journal import read

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        task, data = folder / "task.yaml", folder / "data.jsonl"
        task.write_text(TASK, encoding="utf-8")
        data.write_text("".join(json.dumps(one) + "\n" for one in ask["seeds"]), encoding="utf-8")
        result = audit_plan(
            Plan(
                task=str(task),
                data=str(data),
                models=("openai:planted",),
                base_url=ask["url"],
                dictionaries=(f"gender={two_groups(folder)}",),
                attributes=("gender",),
                order=1,
                per_seed=None,
                replicates=ask["count"],
                concurrency=ask["width"],
                cache=False,
                out=str(folder),
            )
        )
        assert result.path is not None
        cases = {case["id"]: case for case in read(result.path / "cases.jsonl")}
        return {"record": result.record, "cases": cases, "verdicts": [plain(v) for v in result.verdicts]}


def plain(verdict: Any) -> dict[str, Any]:
    """What is needed of a verdict."""
    return {name: getattr(verdict, name) for name in ("case_id", "variant_id", "order", "outcome", "reason")}


def our_given(ask: Mapping[str, Any]) -> dict[str, Any]:
    """The given prompts through our client."""
    import asyncio

    from auditor.core.types import Message, Prompt, Request
    from auditor.models.budget import Budget
    from auditor.models.client import Client
    from auditor.models.openai import OpenAIChat

    asked = [
        Request(
            prompt=Prompt(
                format="plain",
                messages=(Message(role="system", content=ask["system"]), Message(role="user", content=text)),
            ),
            replicate=0,
            variant_id=f"v{number}",
        )
        for number, text in enumerate(ask["prompts"])
    ]

    async def work() -> list[str | None]:
        model = OpenAIChat("planted", base_url=ask["url"], temperature=1.0, max_tokens=16)
        client = Client(model, cache=None, budget=Budget(), concurrency=ask["width"])
        try:
            return [one.output for one in await client.ask(asked)]
        finally:
            await client.aclose()

    start, cpu = time.perf_counter(), time.process_time()
    responses = asyncio.run(work())
    return {"responses": responses, "asked_s": time.perf_counter() - start, "asked_cpu_s": time.process_time() - cpu}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({"pairs": our_pairs, "given": our_given}[asked["do"]](asked)))
