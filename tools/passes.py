"""Which files of the package a run passes: how much of the house one has to know to follow a text, or a row.

    python tools/passes.py --task sentiment --limit 20
    python tools/passes.py tabular --data F --target C --model SPEC --protected sex --method themis

Runs the command line with these arguments, under ``sys.setprofile``, and counts files and functions of ``auditor`` that
were called; what runs when a module is imported (class bodies, constants, what makes them) is left out.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from types import FrameType

import auditor
from auditor.cli.main import main

ROOT = Path(auditor.__file__).parent


def importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported that made this call, such as a constant made by a comprehension."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def passed(arguments: list[str]) -> dict[str, set[str]]:
    """File of the package → names of its functions that the command calls."""
    called: dict[str, set[str]] = defaultdict(set)

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        own = code.co_flags & inspect.CO_OPTIMIZED and code.co_filename.startswith(str(ROOT))
        if event != "call" or not own or code.co_qualname in called.get(code.co_filename, ()):
            return
        if not importing(frame):
            called[code.co_filename].add(code.co_qualname)

    sys.argv = ["audit", *arguments]
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        main()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return {str(Path(file).relative_to(ROOT)): names for file, names in called.items() if file.endswith(".py")}


if __name__ == "__main__":
    files = passed(sys.argv[1:])
    for name in sorted(files):
        print(f"{len(files[name]):5d}  {name}", file=sys.stderr)
    rooms = Counter(name.split("/")[0] for name in files)
    print(", ".join(f"{room} {n}" for room, n in rooms.most_common()), file=sys.stderr)
    print(f"{len(files)} files, {sum(map(len, files.values()))} functions", file=sys.stderr)
