"""Names in front of texts: what a planted model does to a group of names is shown, what it does to lines or to names is not."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from planted_answers import MODEL, YES, Effects, Simulated, Told

from auditor import Result, audit
from auditor.core.plan import Plan
from auditor.core.record.measured import Claim
from auditor.measure.claims import Question
from auditor.measure.contrasts import Versions
from auditor.measure.findings import claims
from auditor.measure.power import shift, spread
from auditor.perturb.name_lines import END, full_names
from auditor.run.preparation import prepare
from auditor.run.state import question as question_of

BLACK = frozenset(f.name for (race, _), firsts in full_names().items() if race == "black" for f in firsts)
NOISE = spread(0.016)


def margin(text: str) -> float:
    """Of the end of the text alone, where words for people are rare: from -2 to 2."""
    digits = hashlib.sha256(text[-12:].encode()).hexdigest()[:8]
    return 4 * int(digits, 16) / 0xFFFFFFFF - 2


def parted(text: str) -> tuple[str, str]:
    """The line, if there is one, and the text."""
    line, end, rest = text.partition(END)
    return (line, rest) if end else ("", text)


def answer(logit: float) -> dict[str, float]:
    p = 1 / (1 + math.exp(-logit))
    return {"invite": p, "reject": 1 - p}


def black_names_lower(text: str) -> dict[str, float]:
    line, rest = parted(text)
    return answer(margin(rest) - (0.25 if BLACK & set(line.split()) else 0))


def lines_lower(text: str) -> dict[str, float]:
    line, rest = parted(text)
    return answer(margin(rest) - (0.8 if line else 0))


def run(model: Callable[[str], Any], **options: Any) -> Result:
    def asked(text: str) -> Any:
        return model(text)

    asked.__qualname__ = model.__name__
    asked.deterministic = True  # type: ignore[attr-defined]
    settings = {"attributes": "gender,race", "order": 1, "cache": False, "out": None, "carrier": "name"}
    return audit("hiring", model=asked, **(settings | options))


def net(result: Result, attribute: str = "race") -> dict[tuple[str, ...], Any]:
    found = [c for c in result.record["claims"] if c["family"] == "net" and c["attribute"] == attribute]
    return {tuple(c["groups"]): c for c in found}


def test_a_model_that_scores_black_names_lower_is_found_by_names() -> None:
    result = run(black_names_lower, limit=120)
    found = net(result)
    claim = found["black", "others"]
    assert claim["verdict"] == "shown"
    assert claim["share_difference"] < 0
    assert claim["carriers"] == {"name": claim["texts"]}
    others = [c for groups, c in found.items() if groups[0] != "black"]
    assert all(c["estimate"] > -0.02 for c in others)
    against = net(run(black_names_lower, limit=120, reference="race:white"))["black", "white"]
    assert against["verdict"] == "shown"
    assert against["estimate"] == pytest.approx(-0.25, abs=0.01)


def test_a_model_that_reacts_to_any_line_shows_nothing() -> None:
    for carrier in ("name", "words,name"):
        result = run(lines_lower, limit=60, carrier=carrier)
        by_name = [c for c in result.record["claims"] if c["family"] == "net" and "name" in c["carriers"]]
        assert by_name
        assert not [c for c in by_name if c["verdict"].startswith("shown")]


@cache
def plan() -> tuple[Told, Question]:
    """The versions that `audit --task hiring --carrier name` asks about."""
    parts = prepare(Plan(task="hiring", models=("rules",), carrier=("name",)))
    question = question_of(parts.task, parts.plan, parts.dictionaries, {MODEL: True}, {})
    return Told.of(parts), dataclasses.replace(question, outcomes=(YES,))


def simulated(effects: Effects, runs: int, **options: Any) -> list[list[Claim]]:
    table, question = plan()
    model = Simulated(table, "race", {"black": -1.0})
    laid_out, out = Versions(model, model.columns()), []
    for n in range(runs):
        model.draw(np.random.default_rng([n, 18]), effects, **options)
        out.append([c for c in claims(model, question, laid_out) if c.family == "net"])
    return out


@pytest.mark.slow
def test_five_points_are_shown_from_labels_alone_within_the_default_budget() -> None:
    table, _ = plan()
    assert len(table.columns().version_text) < 2_500
    runs = simulated(Effects(net=shift(0.05), noise=NOISE, word=0.02), 30)
    black = [c for found in runs for c in found if c.groups == ("black", "others")]
    assert sum(c.verdict == "shown" for c in black) >= 0.6 * len(runs)


@pytest.mark.slow
@pytest.mark.parametrize(("sd", "scores"), [(0.05, False), (0.1, False), (0.1, True)])
def test_effects_of_single_names_are_no_effect_of_a_group(sd: float, scores: bool) -> None:
    runs = simulated(Effects(noise=NOISE, word=sd), 40, scores=scores)
    false = sum(any(c.verdict == "shown" for c in found) for found in runs)
    assert false <= 6  # of 40; at a rate of 5 %, one draw in a hundred has more
