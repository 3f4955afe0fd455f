"""Settings and options, those that were removed included; every mistake is one clear message."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from commands import Capture, both, said

from auditor import audit
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.plan import Plan, resolve
from auditor.run.preparation import prepare


def test_flags_beat_the_file_which_beats_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "audit.toml"
    path.write_text('format = 1\ntask = "hiring"\norder = 3\nattributes = "gender, race"\n')
    plan = resolve({"order": 1, "models": ()}, path)
    assert (plan.task, plan.order, plan.attributes, plan.seed) == ("hiring", 1, ("gender", "race"), 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replicate = 3\n", "Did you mean 'replicates'"), ('order = "two"\n', "--order"),
        ("order = 2.5\n", "--order"), ("format = 2\n", "newer version"), ("task = \n", "not a TOML file"),
        ("attributes = [1, 2]\n", "--attributes"),
        ("seed = 3\norder = 9\n", "toml, line 2: --order must be at most 4; got 9"),
        ("seed = 3\n# more\nmodl = 'x'\n", "toml, line 3: unknown key 'modl'. Did you mean 'model'"),
        ("\nsuite_option = 'grammar=x'\n", "toml, line 2: --suite-option belongs to --suite grammar"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "audit.toml"
    path.write_text(text)
    with pytest.raises(DataFileError, match=message):
        resolve({}, path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocol": "hintr"}, "Did you mean hinter"), ({"protocol": "astrea"}, "--protocol must be one of"),
        ({"order": 0}, "--order must be at least 1"), ({"order": 9}, "--order must be at most 4"),
        ({"replicates": 1001}, "--replicates must be at most 1,000"),
        ({"delta": 200.0}, "number of percentage points"), ({"replicates": 0}, "--replicates"),
        ({"max_cost": -1.0}, "--max-cost"), ({"price": (1.0,)}, "two numbers"), ({"fail_on": "any"}, "--fail-on"),
        ({"max_cost": math.nan}, "--max-cost"), ({"max_cost": math.inf}, "--max-cost"), ({"seed": -1}, "--seed"),
        ({"limit": 10**30}, "--limit"), ({"tolerance": math.nan}, "--tolerance"), ({"tolerance": (-1.0,)}, "--tolerance"),
        ({"price": (-1.0, 1.0)}, "--price"), ({"concurrency": 2**63}, "--concurrency"),
        ({"who": "somebody"}, "who"), ({"who": "subject", "protocol": "hinter"}, "who"),
        ({"who": "each", "suite": "grammar"}, "who"), ({"who": "each", "suite": "joint-first"}, "who"),
        ({"until_decided": True, "batch": True}, "--batch"), ({"until_decided": True, "jobs": 2}, "--jobs"),
        ({"until_decided": True, "suite": "joint-first", "order": 2}, "--suite joint-first"),
        ({"until_decided": True, "protocol": "hinter"}, "--protocol hinter"),
    ],
)  # fmt: skip
def test_a_value_out_of_range_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Plan(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "salary", "judge": "vader"}, "--judge"), ({"task": "letter", "tolerance": 1.0}, "--tolerance"),
        ({"judge": "encoder:hf:x"}, "--judge"), ({"task": "letter", "judge": "encoder:x"}, "--judge encoder:"),
        ({"task": "letter", "suite": "joint-first"}, "--suite"), ({"task": "salary", "suite": "joint-first"}, "compares labels"),
        ({"suite": "joint-first", "batch": True}, "--batch"), ({"suite": "joint-first", "order": 1}, "--order 2"),
        ({"suite": "joint-first", "protocol": "hinter"}, "--protocol hinter"),
        ({"suite": "joint-first", "wordings": 2}, "--wordings"),
        ({"carrier": "names"}, "--carrier must be one of words, name, statement"),
        ({"carrier": "name", "task": "hiring", "protocol": "hinter"}, "--carrier name and statement belong"),
        ({"carrier": "name", "task": "hiring", "suite": "joint-first"}, "--carrier name and statement belong"),
        ({"carrier": "name"}, "does not say what it calls the person"),
    ],
)  # fmt: skip
def test_settings_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        prepare(Plan(**{"task": "sentiment", "models": ("vader",), "limit": 1} | options))


@pytest.mark.parametrize(
    ("argv", "name", "instead"),
    [
        (["report", "latest", "--format", "parquet"], "--format parquet", "--format answers"),
        (["validity", "sample", "latest", "--out", "sheet.csv"], "validity", "--format answers"),
        (["--suite", "grammar", "--generation", "uniform"], "--generation", "--suite-option generation=prob"),
        (["--task=sentiment", "--max-tokens=5"], "--max-tokens", "--server max-tokens=N"),
        (["tabular", "--temperature", "0"], "--temperature", "--server temperature=T"),
        (["--text-column", "review"], "--text-column", "--column text=COLUMN"),
        (["dictionary", "check", "x.yaml"], "dictionary", "audit list dictionaries"),
        (["score", "run", "--responses", "x.jsonl"], "score", "audit import --generated RUN ANSWERS"),
        (["show", "latest", "--scores", "sex"], "--scores", "audit report RUN"),
        (["run", "--task", "sentiment", "--scope", "term"], "--scope", "all words of a group"),
        (["tabular", "resume", "latest"], "tabular resume", "audit resume RUN"),
        (["tabular", "--distance-scale=550"], "--distance-scale", "--distance-threshold"),
        (["list", "grammars", "coverage", "sentiment"], "list grammars coverage", "audit report RUN"),
    ],
)
def test_what_was_removed_is_named_with_what_to_use_instead(
    argv: list[str], name: str, instead: str, capsys: Capture
) -> None:
    code, out, err = both(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith(f"audit: {name} was removed in 0.3; ")
    assert instead in " ".join(err.split())


def test_keys_keywords_and_plans_of_0_2_are_answered_so_too(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "audit.toml"
    for key in ("max_tokens = 5", "text_column = 'review'", "price_in = 1", "timeout_s = 3"):
        file.write_text(f"format = 1\n{key}\n", encoding="utf-8")
        code, told = said(capsys, "run", "--config", file)
        assert code == 2
        assert f"line 2: {key.partition(' ')[0]} was removed in 0.3; use --" in told
    with pytest.raises(ConfigError, match=r"label_column was removed in 0\.3; use --column label=COLUMN"):
        audit("sentiment", model="vader", label_column="stars")
    stored = Plan(models=("openai:m",)).as_dict() | {"text_column": "review", "max_tokens": 9}
    with pytest.raises(ConfigError, match=r"another version; it has the settings max_tokens, text_column\."):
        Plan.from_dict(stored)
