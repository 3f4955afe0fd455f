"""A whole run on many short texts: generated, checked, asked, judged, journaled, reported.

The texts come from templates: three to five sentences, at most 60 words, each text once. The model is the embedded
review classifier. Memory is the resident memory of the run's processes together (shared pages counted once for each
of them), looked up twice a second.

Usage::

    python benchmarks/million.py [--scale 0.05] [--jobs 2] [--engine local|ray] [--phases] [--keep DIR]

``--scale`` counts in million variants (placebo variants not counted). ``--phases`` runs in this process and prints
where the time went.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

from common import Row

# Variants of one seed of `write_texts` on average, with gender and nationality, order 2 and 8 for each set.
PER_SEED = 20.0
PEOPLE = (
    "woman",
    "man",
    "mother",
    "father",
    "sister",
    "brother",
    "actress",
    "actor",
    "daughter",
    "son",
    "wife",
    "husband",
)
NATIONS = ("French", "German", "Italian", "Mexican", "Chinese", "Indian", "Russian", "Polish", "Turkish", "Brazilian")
DEEDS = (
    "walked home", "praised the plot", "left the room early", "enjoyed the music", "wrote a long letter",
    "read the script twice", "sang at the wedding", "missed the last scene", "laughed at every joke",
    "called the director", "told the whole story", "waited in the rain", "found the ending dull",
    "recommended the film", "slept through the second half", "paid for the tickets", "argued about the cast",
)  # fmt: skip
PLACES = (
    "in the old cinema", "at the festival", "near the station", "after dinner", "on a cold evening", "with some friends",
    "before the premiere", "in a small town", "during the break", "for the third time", "without any hurry", "at last",
)  # fmt: skip
ENDS = (
    "The film was {a} and the music was {b}.", "It was a {a} story with a {b} end.", "I found it {a}.",
    "The pictures were {a}, the dialogue was {b}.", "What a {a} evening it was.",
)  # fmt: skip
WORDS = (
    "wonderful", "dull", "boring", "great", "awful", "charming", "slow", "brilliant", "weak", "moving", "poor", "funny",
    "bad", "good", "terrible", "lovely", "predictable", "clever", "tedious", "superb",
)  # fmt: skip


def text(rng: Random) -> str:
    """One text: one to three sentences about people, one or two about the film."""
    lines = [f"The {rng.choice(NATIONS)} {rng.choice(PEOPLE)} {rng.choice(DEEDS)} {rng.choice(PLACES)}."]
    for _ in range(rng.choice((0, 1, 1, 2))):
        lines.append(f"A {rng.choice(PEOPLE)} {rng.choice(DEEDS)} {rng.choice(PLACES)}.")
    while len(lines) < 3 or (len(lines) < 5 and rng.random() < 0.4):
        lines.append(rng.choice(ENDS).format(a=rng.choice(WORDS), b=rng.choice(WORDS)))
    return " ".join(lines)


def write_texts(path: Path, count: int, seed: int = 11) -> None:
    """Write ``count`` distinct texts as JSON lines."""
    rng, known = Random(seed), set()
    with path.open("w", encoding="utf-8") as file:
        while len(known) < count:
            made = text(rng)
            key = hash(made)
            if key not in known:
                known.add(key)
                file.write(json.dumps({"id": f"t{len(known)}", "text": made}) + "\n")


def plan_of(data: Path, out: Path, *, jobs: int, model: str, engine: str = "local") -> Any:
    """The plan of the run."""
    from auditor.core.plan import Plan

    return Plan(
        task="sentiment",
        models=(model,),
        data=str(data),
        attributes=("gender", "nationality"),
        order=2,
        jobs=f"ray:{jobs}" if engine == "ray" else str(jobs),
        cache=False,
        out=str(out),
    )


def resident_mib(pid: int) -> float:
    """Resident memory of a process and of all below it, in MiB."""
    total, todo = 0, [pid]
    while todo:
        one = todo.pop()
        try:
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            for thread in Path(f"/proc/{one}/task").iterdir():
                todo += [int(child) for child in (thread / "children").read_text().split()]
        except (OSError, IndexError):
            continue
    return total / 2**20


def run(
    scale: float, *, jobs: int = 2, model: str = "reviews", engine: str = "local", keep: Path | None = None
) -> dict[str, Any]:
    """Run in a process of its own; seconds, memory and what the record counts."""
    with tempfile.TemporaryDirectory() as folder:
        root = keep or Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        seeds = max(20, round(scale * 1_000_000 / PER_SEED))
        write_texts(root / "texts.jsonl", seeds)
        command = [sys.executable, __file__, "--inside", str(root), "--jobs", str(jobs)]
        command += ["--model", model, "--engine", engine]
        begun, spent = time.perf_counter(), _cpu_s()
        # A group of its own, so that an interrupt here reaches it through us.
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        samples: list[tuple[float, float, float]] = []

        def watch() -> None:
            while process.poll() is None:
                own = resident_mib(process.pid)
                samples.append((time.perf_counter() - begun, own, _own(process.pid)))
                time.sleep(0.5)

        watcher = threading.Thread(target=watch)
        watcher.start()
        out, _ = process.communicate()
        watcher.join()
        seconds = time.perf_counter() - begun
        if process.returncode:
            raise SystemExit(f"the run ended with {process.returncode}")
        told: dict[str, Any] = json.loads(out.splitlines()[-1])
    tenth = next((total for at, total, _ in samples if at >= seconds / 10), 0.0)
    return told | {
        "seeds": seeds,
        "jobs": jobs,
        "engine": engine,
        "seconds": round(seconds, 1),
        "cpu_s": round(_cpu_s() - spent, 1),
        "variants_per_s": round(told["variants"] / seconds, 1),
        "mib_at_a_tenth": round(tenth),
        "mib_peak": round(max((total for _, total, _ in samples), default=0.0)),
        "mib_peak_of_the_main_process": round(max((own for _, _, own in samples), default=0.0)),
    }


def _cpu_s() -> float:
    """Processor time of all processes below this one that have ended."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _own(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, IndexError):
        return 0.0


def inside(root: Path, *, jobs: int, model: str, engine: str = "local") -> dict[str, Any]:
    """The run itself; what its record counts, and seconds up to the record and for what comes after."""
    from auditor.run.result import audit_plan

    marks: dict[str, float] = {}
    began = time.perf_counter()

    def observe(event: Any) -> None:
        marks.setdefault(event.phase, time.perf_counter() - began)

    plan = plan_of(root / "texts.jsonl", root / "runs", jobs=jobs, model=model, engine=engine)
    result = audit_plan(plan, observe=observe)
    ended = time.perf_counter() - began
    counts = result.record["counts"]
    assert result.path is not None
    size = sum(f.stat().st_size for f in result.path.rglob("*") if f.is_file())
    return {name: counts[name] for name in ("cases", "variants", "valid", "placebos", "calls", "violations")} | {
        "loop_s": round(marks.get("report", ended), 1),
        "report_s": round(ended - marks.get("report", ended), 1),
        "folder_mib": round(size / 2**20),
    }


WAYS = (("2 processes", "local", 2), ("1 process", "local", 1), ("1 Ray worker", "ray", 1), ("2 Ray workers", "ray", 2))


def measure(scale: float = 0.05, beside: float = 0.02) -> list[Row]:
    """One run of ``scale`` million variants with two processes that make and check them; other ways at ``beside``.

    A run on Ray has the seconds to start the cluster in it.
    """
    from importlib.util import find_spec

    found = run(scale)
    note = (
        f"{found['variants']:,} variants and {found['placebos']:,} placebo variants of {found['seeds']:,} texts in "
        f"{found['seconds']:.0f} s; {found['calls']:,} calls; {found['folder_mib']} MiB on disk; "
    )
    memory = (
        f"{found['mib_at_a_tenth']} MiB after a tenth of the time; "
        f"{found['mib_peak_of_the_main_process']} MiB in the main process"
    )
    rows = [
        Row("variants generated, checked, judged, journaled, 2 processes", found["variants_per_s"], "/s", note=note),
        Row("resident memory of such a run, all processes", found["mib_peak"], "MiB", note=memory),
    ]
    for name, engine, jobs in WAYS:
        if engine == "local" or find_spec("ray"):
            found = run(beside, jobs=jobs, engine=engine)
            note = f"{found['variants']:,} variants in {found['seconds']:.0f} s"
            rows.append(Row(f"the same with {name}, a smaller run", found["variants_per_s"], "/s", note=note))
    return rows


def main() -> None:
    """Run once and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scale", type=float, default=0.05, help="million variants")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--engine", default="local", choices=("local", "ray"))
    parser.add_argument("--model", default="reviews")
    parser.add_argument("--keep", type=Path, help="a folder for texts and run, kept")
    parser.add_argument("--phases", action="store_true", help="profile one process")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    given = {"jobs": args.jobs, "model": args.model, "engine": args.engine}
    if args.inside:
        print(json.dumps(inside(args.inside, **given)))
    elif args.phases:
        import cProfile
        import pstats

        with tempfile.TemporaryDirectory() as folder:
            root = args.keep or Path(folder)
            root.mkdir(parents=True, exist_ok=True)
            write_texts(root / "texts.jsonl", max(20, round(args.scale * 1_000_000 / PER_SEED)))
            profile = cProfile.Profile()
            print(json.dumps(profile.runcall(inside, root, **given)))
            for order in ("cumulative", "tottime"):
                pstats.Stats(profile).sort_stats(order).print_stats(60)
    else:
        print(json.dumps(run(args.scale, keep=args.keep, **given)))


if __name__ == "__main__":
    main()
