"""What version 0.3 took away: asking for it ends with exit code 2 and one line that says what to use instead."""

from __future__ import annotations

import pytest

from auditor.cli.main import run


@pytest.mark.parametrize(
    ("argv", "name", "instead"),
    [
        (["report", "latest", "--format", "parquet"], "--format parquet", "--format answers-parquet"),
        (["report", "latest", "--format", "every-eval-ever"], "--format every-eval-ever", "--format json"),
        (["report", "latest", "--format=html,ai-verify-json"], "--format ai-verify-json", "--format json"),
        (["validity", "sample", "latest", "--out", "sheet.csv"], "validity", "--format answers"),
        (["validity"], "validity", "--format answers"),
        (["generate", "--task", "sentiment", "--insertions"], "--insertions", "--suite grammar"),
        (["--suite", "grammar", "--generation", "uniform"], "--generation uniform", "--generation rand"),
        (["--suite=grammar", "--generation=bandit"], "--generation bandit", "--generation prob"),
        (["dictionary", "check", "x.yaml"], "dictionary", "audit list dictionaries"),
        (["score", "run", "--responses", "x.jsonl"], "score", "audit import --generated RUN ANSWERS"),
        (["replay", "latest", "F001"], "replay", "audit show RUN ID --again"),
        (["explain", "HID201"], "explain", "audit show CODE"),
        (["watch", "series"], "watch", "audit compare DIR"),
        (["groups", "latest"], "groups", "audit show RUN --scores ATTRIBUTE"),
        (["models"], "models", "audit list models"),
        (["tasks", "new", "mine"], "tasks", "audit list tasks"),
        (["--task=sentiment", "--strategy=adaptive"], "--strategy", "--suite joint-first"),
        (["run", "--task", "sentiment", "--scope", "term"], "--scope", "all words of a group"),
        (["--task=sentiment", "--scope=term"], "--scope", "all words of a group"),
        (["tabular", "resume", "latest"], "tabular resume", "audit resume RUN"),
        (["tabular", "--mode", "population"], "--mode", "--theta"),
        (["tabular", "--columns=sex"], "--columns", "--protected"),
        (["tabular", "--seed-source", "data"], "--seed-source", "clusters"),
        (["tabular", "--distance", "absolute"], "--distance", "--distance-threshold"),
        (["tabular", "--distance-scale=550"], "--distance-scale", "--distance-threshold"),
        (["tabular", "--profile", "p.yaml"], "--profile", "--data"),
        (["ll144", "--rankings", "r.jsonl"], "--rankings", "audit import"),
        (["report", "latest", "--section", "acme/contact"], "--section", "--format json"),
        (["report", "latest", "--format", "inspect"], "--format inspect", "--format answers"),
    ],
)
def test_what_was_removed_is_named_with_what_to_use_instead(
    argv: list[str], name: str, instead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"audit: {name} was removed in 0.3; ")
    assert instead in err
    assert err.count("\n") == 1
