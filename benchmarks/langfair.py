"""LangFair and this tool on the same texts, the same loopback server and the same number of connections, in one run.

The server (`langfair_server.py`) has planted behaviour, so what a tool should have seen is known. LangFair runs in an
environment of its own (`langfair_side.py`), because its dependencies pin others than ours; its interpreter is
``--python PATH`` or ``LANGFAIR_PYTHON``. To make one::

    python -m venv langfair-env
    langfair-env/bin/pip install torch langfair langchain-openai "pyarrow<23"

(LangFair 0.8.0 needs numpy below 2, which the newest pyarrow that its dependencies bring refuses.)

Three parts: each tool makes its own pairs from the same texts, in a world with planted differences and in one
without; both ask the same given pairs; both meet a server that limits calls per second and blocks some texts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import Row
from langfair_ours import ROOT, SYSTEM
from langfair_server import FEMALE, MALE, REFUSAL, arm_of, broken, words

HERE = Path(__file__).resolve().parent
WIDTH = 32
COUNT = 3
LATENCY_S = 0.05
PER_SECOND = 15.0
LIMIT = 160
HOW = (
    "langfair: skipped. It needs LangFair in an environment of its own: "
    "python -m venv langfair-env && langfair-env/bin/pip install torch langfair langchain-openai 'pyarrow<23'; "
    "then LANGFAIR_PYTHON=langfair-env/bin/python make bench, "
    "or python benchmarks/langfair.py --python langfair-env/bin/python"
)


def seeds(limit: int | None = None) -> list[dict[str, Any]]:
    """Embedded film reviews that name a woman or a man in a word of the server's lists."""
    path = ROOT / "auditor" / "embedded" / "seeds" / "sentiment.jsonl"
    found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [one for one in found if set(words(one["text"])) & (FEMALE | MALE)][:limit]


@contextmanager
def server(settings: Mapping[str, Any]) -> Iterator[str]:
    """The planted server in a process of its own; gives its URL."""
    with subprocess.Popen(
        [sys.executable, str(HERE / "langfair_server.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(settings) + "\n")
        process.stdin.flush()
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.terminate()


def run(command: Sequence[str], texts: Sequence[Mapping[str, Any]], ask: Mapping[str, Any], **world: Any) -> Any:
    """One tool in one fresh process against one fresh server: what it said, with ``server``, ``wall_s`` and ``cpu_s``."""
    settings = {"latency_s": LATENCY_S, "world": "planted", "seeds": [dict(one) for one in texts]} | world
    with server(settings) as url:
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            command, input=json.dumps({**ask, "url": url, "width": WIDTH}), capture_output=True, text=True
        )
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        with urllib.request.urlopen(url.removesuffix("/v1") + "/stats", timeout=30) as answer:
            seen = json.load(answer)
    return json.loads(done.stdout.splitlines()[-1]) | {
        "server": seen,
        "wall_s": wall,
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def squeezed(text: str) -> str:
    """A text without case and blanks, to see whether anything but the swap was changed."""
    return "".join(text.lower().split())


def majority(answers: Sequence[str]) -> str | None:
    """The answer of more than half of the replicates."""
    best, count = Counter(answers).most_common(1)[0]
    return best if 2 * count > len(answers) else None


def about_pairs(pairs: Sequence[tuple[str, str, bool]]) -> dict[str, int]:
    """Counts over (original, variant, whether a gendered word of the replaced group was left standing)."""
    from auditor.text.agreement import problems

    seen = {"possessive": 0, "agreement": 0, "left": 0, "case": 0, "elsewhere": 0}
    for original, side, left in pairs:
        seen["possessive"] += len(broken(side)) > len(broken(original))
        seen["agreement"] += len(problems(side)) > len(problems(original))
        seen["left"] += left
        seen["case"] += original != original.lower() and side == side.lower()
        seen["elsewhere"] += not only_words_differ(original, side)
    return seen


def untouched(case: Mapping[str, Any], variant: Mapping[str, Any]) -> bool:
    """Whether a gendered word of a group that the variant replaces stands outside its edits."""
    text = case["original"]["input"]
    swaps = [edit for edit in variant["edits"] if edit["kind"] != "agreement"]
    lists = {"female": FEMALE, "male": MALE}
    replaced = frozenset().union(*(lists.get(edit["source_group"], frozenset()) for edit in swaps))
    for edit in sorted(variant["edits"], key=lambda edit: edit["where"], reverse=True):
        start, end = edit["where"]
        text = f"{text[:start]} {text[end:]}"
    return bool(set(words(text)) & replaced)


def only_words_differ(original: str, side: str) -> bool:
    """Whether punctuation and blanks outside words are as they were."""
    keep = [c for c in original if not c.isalnum() and c not in "-"]
    return keep == [c for c in side if not c.isalnum() and c not in "-"]


def their_pairs(found: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What LangFair's pairs are, and which of them differ in the answer (majority of the replicates)."""
    ids = {one["text"]: one["id"] for one in texts}
    rows = list(zip(found["originals"], found["male"], found["female"], strict=True))
    # Of the two sides, the one that says the same as the original is the original in lower case; the other is the swap.
    sides = [
        (original, side, bool(set(words(side)) & other))
        for original, male, female in rows
        for side, other in ((male, FEMALE), (female, MALE))
        if squeezed(side) != squeezed(original)
    ]
    seen: dict[str, Any] = {"pairs": len(rows), "swapped sides": len(sides), **about_pairs(sides)}
    seen["broken pairs"] = sum(bool(broken(m) or broken(f)) for _, m, f in rows)
    seen["same prompt twice"] = sum(m == f for _, m, f in rows)
    if "male_response" in found:
        changed = []
        for number, (original, _, _) in enumerate(rows):
            part = slice(number * COUNT, number * COUNT + COUNT)
            one, other = majority(found["male_response"][part]), majority(found["female_response"][part])
            if one != other:
                changed.append(ids[original])
        seen["arms"] = by_arm([ids[o] for o, _, _ in rows], changed)
        seen |= {"metrics": found["metrics"], "non_completion_rate": found["non_completion_rate"]}
    return seen


def our_view(found: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The same of an audit of ours, by text: a text counts as changed where any of its variants changed."""
    ids = {one["text"]: one["id"] for one in texts}
    cases = found["cases"]
    sides, of, discarded = [], {}, []
    for case, variant in variants(cases):
        if not variant["valid"]:
            discarded.append((case["original"]["input"], variant["input"], False))
        else:
            of[variant["id"]] = ids[case["original"]["input"]]
            sides.append((case["original"]["input"], variant["input"], untouched(case, variant)))
    judged = [v for v in found["verdicts"] if v["order"] == 1]
    changed = {of[v["variant_id"]] for v in judged if v["outcome"] == "violation"}
    record = found["record"]
    claims = [f for f in record["findings"] if f["kind"] == "claim" and not f["directions"]]
    names = ("violation_rate", "seed_violation_rate", "placebo_rate", "noise_floor")
    return {
        "pairs": len(sides),
        "texts": len(set(of.values())),
        "discarded": len(discarded),
        "discarded, by the rules": about_pairs(discarded),
        "swapped sides": len(sides),
        **about_pairs(sides),
        "arms": by_arm(sorted(set(of.values())), sorted(changed)),
        "outcomes": dict(Counter(v["outcome"] for v in judged)),
        "claims": [{key: f[key] for key in ("verdict", "rate", "noise", "text")} for f in claims],
        "estimates": [
            {"name": e["name"], **{k: e["estimate"][k] for k in ("value", "low", "high", "n")}}
            for e in record["estimates"]
            if e["name"] in names and not e["directions"] and e["kind"] is None
        ],
        "status": (record["status"], record["status_reason"]),
        "counts": {k: v for k, v in record["counts"].items() if isinstance(v, int | float)},
        "by_group": record["controls"].get("answers_by_group"),
    }


def variants(cases: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Cases with each of their variants that swaps people; placebo edits are left out."""
    for case in cases.values():
        for variant in case["variants"]:
            if variant["order"] and all(edit["kind"] != "placebo" for edit in variant["edits"]):
                yield case, variant


def by_arm(tested: Sequence[str], changed: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Texts with a changed answer, and texts, by what was planted in them."""
    of, all_of = Counter(map(arm_of, changed)), Counter(map(arm_of, tested))
    return {arm: (of[arm], all_of[arm]) for arm in sorted(all_of)}


def traffic(found: Mapping[str, Any], replicates: int = COUNT) -> dict[str, Any]:
    """What the server saw of a tool."""
    seen = found["server"]
    return {
        "wall_s": round(found["wall_s"], 2),
        "cpu_s": round(found["cpu_s"], 2),
        "span_s": round(seen["span_s"], 2),
        "calls": seen["calls"],
        "answered": seen["answered"],
        "words_in": seen["words_in"],
        "most_in_flight": seen["most_in_flight"],
        "prompts": len(seen["texts"]),
        "asked_more_often": sum(count - replicates for count in seen["texts"].values() if count > replicates),
        "unknown": len(seen["unknown"]),
        "limited": seen["limited"],
        "blocked": seen["blocked"],
        "per_s": round(seen["answered"] / seen["span_s"], 1) if seen["span_s"] else None,
    }


def compare(python: str, limit: int | None = None) -> dict[str, Any]:
    """Everything, as plain data."""
    texts = seeds(limit)
    prompts = [one["text"] for one in texts]
    theirs = [python, "-I", str(HERE / "langfair_side.py")]
    ours = [sys.executable, str(HERE / "langfair_ours.py")]
    ask = {"system": SYSTEM, "count": COUNT, "prompts": prompts, "do": "pairs"}
    mine = {**ask, "seeds": texts}
    out: dict[str, Any] = {"texts": len(texts), "width": WIDTH, "count": COUNT, "latency_s": LATENCY_S}
    out["planted"] = dict(Counter(arm_of(one["id"]) for one in texts))

    def both(name: str, extra: Mapping[str, Any], **world: Any) -> None:
        print(f"langfair: {name} …", file=sys.stderr, flush=True)
        found = run(theirs, texts, {**ask, **extra}, **world)
        out.setdefault("packages", found["packages"])
        out.setdefault("plain_splitter", found["plain_splitter"])
        times = {key: round(found[key], 2) for key in ("import_s", "made_s", "asked_s", "metrics_s") if key in found}
        view = {"raised": found["raised"]} if "raised" in found else their_pairs(found, texts)
        view["unable"] = sum(
            r == "Unable to get response" for k in ("male", "female") for r in found.get(f"{k}_response", ())
        )
        view["refused"] = sum(r == REFUSAL for k in ("male", "female") for r in found.get(f"{k}_response", ()))
        out[f"{name}: LangFair"] = {"times": times, **traffic(found), **view}
        if extra.get("limiter") or (world.get("blocked") and not extra.get("suppress")):
            return
        found = run(ours, texts, mine, **world)
        out[f"{name}: ours"] = {**traffic(found), **our_view(found, texts)}

    both("planted", {})
    both("null", {}, world="null")
    blocked = [one["id"] for one in texts if arm_of(one["id"]) == "calm"][::25]
    out["blocked"] = len(blocked)
    limits = {"per_second": PER_SECOND, "blocked": blocked}
    both("limited, as it comes", {}, **limits)
    both("limited", {"suppress": True}, **limits)
    both("limited, with a limiter", {"suppress": True, "limiter": 0.8 * PER_SECOND}, **limits)
    out |= same_pairs(theirs, ours, texts, ask)
    return out


def same_pairs(
    theirs: Sequence[str], ours: Sequence[str], texts: Sequence[Any], ask: Mapping[str, Any]
) -> dict[str, Any]:
    """The pairs of an audit of ours, both sides of each, given to both clients as one list."""
    print("langfair: same pairs …", file=sys.stderr, flush=True)
    plan = run(ours, texts, {**ask, "seeds": texts, "count": 1})
    flat = [
        side
        for case, variant in variants(plan["cases"])
        if variant["valid"]
        for side in (case["original"]["input"], variant["input"])
    ]
    given = {**ask, "do": "given", "count": 1, "prompts": flat}
    out: dict[str, Any] = {"same pairs": len(flat) // 2, "same pairs, different prompts": len(set(flat))}
    for name, command in (("LangFair", theirs), ("ours", ours)):
        runs = [run(command, texts, given) for _ in range(3)]  # the median by time at the server
        runs.sort(key=lambda found: found["server"]["span_s"])
        assert all(len(one["responses"]) == len(flat) for one in runs)
        cpu = sorted(one["asked_cpu_s"] for one in runs)[1]
        out[f"same pairs: {name}"] = {"asked_cpu_s": round(cpu, 2), **traffic(runs[1], 1)}
    return out


def rows(found: Mapping[str, Any]) -> list[Row]:
    """The figures for the table of all benchmarks."""
    version = f"LangFair {found['packages']['langfair']}"
    theirs, ours = found["planted: LangFair"], found["planted: ours"]
    same_theirs, same_ours = found["same pairs: LangFair"], found["same pairs: ours"]
    limited_theirs, limited_ours = found["limited: LangFair"], found["limited: ours"]
    calm = lambda one: sum(one["arms"][arm][0] for arm in ("calm", "grammar", "noisy"))  # noqa: E731
    made = [
        ("same pairs: time at the server", same_ours["span_s"], "s", same_theirs["span_s"], ""),
        ("same pairs: CPU time of the asking process", same_ours["asked_cpu_s"], "s", same_theirs["asked_cpu_s"], ""),
        ("same pairs: calls", same_ours["calls"], "calls", same_theirs["calls"], f"{found['same pairs']} pairs"),
        ("own pairs: calls", ours["calls"], "calls", theirs["calls"], "ours with placebo edits, controls, confirmation"),
        ("own pairs: whole process", ours["wall_s"], "s", theirs["wall_s"], ""),
        ("sides with a broken possessive", ours["possessive"], "sides", theirs["possessive"], f"of {ours['swapped sides']} and {theirs['swapped sides']}"),
        ("texts that changed though nothing about people was planted", calm(ours), "texts", calm(theirs), "before any control"),
        ("behind a limit of calls: answers missing at the end", limited_ours["counts"]["failed"], "answers", limited_theirs["unable"], f"LangFair's own rate says {limited_theirs['non_completion_rate']}"),
    ]  # fmt: skip
    return [
        Row(
            f"side by side: {name}",
            float(value),
            unit,
            1,
            version,
            float(other),
            value / other if other else None,
            note,
        )
        for name, value, unit, other, note in made
    ]


def measure() -> list[Row]:
    """For `run.py`: nothing, with the reason, where LangFair's interpreter is not named."""
    python = os.environ.get("LANGFAIR_PYTHON", "")
    if not python:
        print(HOW, file=sys.stderr)
        return []
    return rows(compare(python, LIMIT))


def main() -> int:
    """Compare, and print everything as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--python", default=os.environ.get("LANGFAIR_PYTHON"), help="interpreter of LangFair's environment"
    )
    parser.add_argument("--limit", type=int, default=LIMIT, help="texts at most")
    args = parser.parse_args()
    if not args.python or not Path(args.python).exists():
        print(HOW if not args.python else f"{args.python}: there is no such interpreter.\n{HOW}", file=sys.stderr)
        return 2
    found = compare(args.python, args.limit)
    print(json.dumps(found, indent=1, ensure_ascii=False))
    for row in rows(found):
        print(row, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
