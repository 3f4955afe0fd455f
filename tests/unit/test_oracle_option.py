"""``--oracle probability``: from the plan to the record, with models whose scores are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auditor import audit
from auditor.cli.main import run
from auditor.core.errors import ConfigError, UserError
from auditor.core.plan import Plan
from auditor.perturb import grammar
from auditor.tasks.oracles import shares_of
from auditor.testing.planted import Planted

GRAMMAR = {"suite": "grammar", "order": 1, "out": None, "limit": 40}
TEXTS = ["He is a fine cook, and he knows it.", "The man plays the father in a warm film."]


def rates(result: Any) -> dict[float, tuple[int, int]]:
    return {r["epsilon"]: (r["violating_cases"], r["cases"]) for r in result.record["probability"]["rows"]}


def test_a_change_of_the_score_counts_though_the_label_stays() -> None:
    # "she" moves the margin from 1 to 0.5: p(positive) from 0.731 to 0.622, a difference of 0.109.
    model = Planted(additive={"she|woman|mother|lady": 0.5}, scores=True, base="constant")
    options: dict[str, Any] = {"attributes": ["gender"], "order": 1, "out": None, "data": TEXTS}
    labels = audit("sentiment", model=model, **options)
    assert not any(v.outcome == "violation" for v in labels.verdicts)
    assert "probability" not in labels.record
    scores = audit("sentiment", model=model, oracle="probability", tolerance=(0.1, 0.2), **options)
    assert scores.record["probability"]["label"] == "positive"
    found = rates(scores)
    assert found[0.1][0] > 0 == found[0.2][0]
    changed = [v for v in scores.verdicts if v.outcome == "violation"]
    assert changed
    assert all(v.distance == pytest.approx(0.1086, abs=1e-4) for v in changed)
    assert "Cases beyond each tolerance" in scores.to_text(width=100, encoding="utf-8", full=True)


def test_a_model_without_scores_is_refused() -> None:
    with pytest.raises(UserError, match="gives no probability of 'positive'"):
        audit("sentiment", model=Planted(), oracle="probability", data=TEXTS, out=None)


def test_bls_takes_the_shares_as_expected() -> None:
    shares = shares_of(grammar.load("fill-mask"))
    assert shares["plumber"] == pytest.approx(0.977)
    names = {g.replace("_", " "): g for g in shares}

    def follows(text: str) -> dict[str, float]:
        held = [n for n in names if n in text.lower()]  # none in a control text
        share = shares[names[max(held, key=len)]] if held else 0.5
        return {"his": share, "her": 1 - share}

    options: dict[str, Any] = {**GRAMMAR, "oracle": "probability", "tolerance": (0.01,)}
    equal = audit("fill-mask", model=follows, **options)
    bls = audit("fill-mask", model=follows, reference="bls", **options)
    assert rates(equal)[0.01][0] > 0
    assert rates(bls)[0.01][0] == 0 < rates(bls)[0.01][1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"oracle": "probabilty"}, "Did you mean probability"),
        ({"tolerance": (0.1, 0.2)}, "--oracle probability only"),
        ({"reference": "bls"}, "--reference belongs to --oracle probability"),
        ({"oracle": "probability", "reference": "bsl"}, "--reference takes equal, bls, or ATTRIBUTE:GROUP"),
        ({"oracle": "probability", "tolerance": (1.5,)}, "between 0 and 1"),
        ({"oracle": "probability", "tolerance": (float("nan"),)}, "must be a number"),
        ({"oracle": "probability", "reference": "bls"}, "--suite grammar"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Plan(**options)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--task", "sentiment", "--model", "planted:additive=she:0.5,scores=true", "--limit", "12"]
    argv += ["--oracle", "probability", "--tolerance", "0.05,0.1", "--out", str(tmp_path), "--format", "json"]
    assert run(argv) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["spec"]["oracle"] == "probability"
    assert [r["epsilon"] for r in record["probability"]["rows"]] == [0.05, 0.1]
    assert run([*argv, "--tolerance", "much"]) == 2
    assert "takes numbers" in capsys.readouterr().err
