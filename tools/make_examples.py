"""Write ``reports/examples``: reports of real runs, made by the commands that a user types.

Usage::

    python tools/make_examples.py [--data ../shared/data]

- ``sentiment``: the embedded subjects on the embedded film reviews; the two pictures show it;
- ``german-credit``: a logistic regression on the German credit data (Hofmann 1994), sex and age band of
  ``personal_status`` protected;
- ``care-summaries``: recorded summaries of care notes about women and men (``examples/museum/README.md``).

What needs data that are not there is left out, and said.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from auditor.cli.main import run as audit

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "reports" / "examples"


def run(*argv: str) -> None:
    """One command; findings are no error here."""
    code = audit([str(a) for a in argv])
    if code not in (0, 1):
        raise SystemExit(f"audit {' '.join(argv)} ended with {code}")


def newest(folder: Path) -> Path:
    """The run folder that was made last."""
    return max(p.parent for p in folder.glob("*/plan.json"))


def sentiment(work: Path) -> None:
    """Two embedded subjects side by side, the formats beside the page, and the pictures of the README."""
    run("--task", "sentiment", "--model", "reviews", "--model", "vader", "--no-cache")
    found = newest(Path("reports"))
    terminal(found, OUT / "first-screen.svg")
    picture(found / "report.html", OUT / "first-page.png")
    shutil.copy(found / "report.html", OUT / "sentiment.html")
    for name, suffix in (("md", "md"), ("sarif", "sarif"), ("eu-ai-act", "eu-ai-act.html")):
        run("report", str(found), "--format", name, "--out", str(OUT / f"sentiment.{suffix}"))


def terminal(found: Path, target: Path) -> None:
    """The first screen as a drawing; it asks for no font from outside."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    from auditor.run.audit import load

    text = load(found).to_text(width=100, color=True)
    console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(f"$ audit --task sentiment\n{text}"), soft_wrap=True)
    plain = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.S)
    target.write_text(console.export_svg(title="audit", code_format=plain), encoding="utf-8")


def picture(page: Path, target: Path) -> None:
    """The top of a page, as a browser shows it; left out where there is none."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("first-page.png: left out, chromium is not there", file=sys.stderr)
        return
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--hide-scrollbars")
    shot = f"--screenshot={target}"
    subprocess.run([browser, *options, "--window-size=1280,1400", shot, page.resolve().as_uri()], check=True)


def german(work: Path, data: Path) -> None:
    """A model that was fitted here, on the whole table."""
    import pandas as pd
    import skops.io
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = pd.read_csv(data)
    x, y = frame.drop(columns="credit"), frame["credit"]
    words = [n for n in x.columns if not pd.api.types.is_numeric_dtype(x[n])]
    numbers = [n for n in x.columns if n not in words]
    model = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), words), (StandardScaler(), numbers)),
        LogisticRegression(max_iter=1000),
    ).fit(x, y)
    skops.io.dump(model, work / "german.skops")
    run(
        *("tabular", "--data", str(data), "--target", "credit", "--protected", "personal_status"),
        *("--model", f"sklearn:{work / 'german.skops'}", "--method", "themis", "--out", str(work)),
        *("--favourable", "1"),  # 1 is good credit, 2 is bad
    )
    shutil.copy(newest(work) / "report.html", OUT / "german-credit.html")


def care(work: Path, data: Path) -> None:
    """Words of health in recorded summaries, by the mapping of ``examples/museum``."""
    roles = ROOT / "examples" / "museum" / "health.toml"
    run("import", str(data), "--map", str(roles), "--name", "care summaries", "--out", str(work))
    shutil.copy(newest(work) / "report.html", OUT / "care-summaries.html")


def main() -> None:
    """Make every example whose data are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    data = parser.parse_args().data.resolve()
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # no path of this machine gets into a report
        for name, make, needed in (
            ("german", german, data / "german" / "german_raw.csv"),
            ("care", care, data / "recorded_llm" / "care_summaries.csv.gz"),
        ):
            if not needed.exists():
                print(f"{name}: left out, {needed.name} is not there", file=sys.stderr)
                continue
            work = Path(name)
            work.mkdir()
            local = work / needed.name
            shutil.copy(needed, local)
            make(work, local)
        Path("sentiment").mkdir()
        sentiment(Path("sentiment"))


if __name__ == "__main__":
    main()
