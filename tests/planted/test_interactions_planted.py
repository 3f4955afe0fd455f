"""Which hidden changes are listed, and which are called interactions, on models whose effects are known."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from judged import edit

from auditor.core.types import Answer, Edit, Finding, Verdict
from auditor.measure import interactions as family
from auditor.measure.claims import Question, decide
from auditor.measure.findings import Settings, claims, hidden_findings, interactions, of_claims
from auditor.measure.interactions import joints
from auditor.measure.observations import Observations

TEXTS = 100
RUNS = 60
QUESTION = Question(outcomes=("yes",))
SIDES = {"gender": ("male", ("female", "female", "nonbinary")), "race": ("white", ("black", "black", "asian", "asian"))}


class Made(NamedTuple):
    """A version before it is answered."""

    text: int
    changes: tuple[Edit, ...]

    @property
    def placebo(self) -> bool:
        return any(e.kind == "placebo" for e in self.changes)

    @property
    def joint(self) -> bool:
        return len(self.changes) > 1


@cache
def versions() -> list[Made]:
    """The versions of all texts: three words for a gender, four for a race, every pair; the same with placebos."""
    out = []
    for text in range(TEXTS):
        options = {
            kind: [
                [
                    edit(
                        f"{kind}-{name}", f"{kind}-{name}-{word}-{text % 7}",
                        (source, target) if kind == "swap" else ("neutral", "neutral"), attribute=name, kind=kind,
                    )
                    for word, target in enumerate(targets[: 4 if kind == "swap" else 3])
                ]
                for name, (source, targets) in SIDES.items()
            ]
            for kind in ("swap", "placebo")
        }  # fmt: skip
        out.append(Made(text, ()))
        for first, second in options.values():
            out += [Made(text, (e,)) for e in (*first, *second)]
            pairs = [Made(text, (a, b)) for a in first for b in second]
            out += pairs[4:] if first[0].kind == "swap" else pairs[:5]
    return out


Answers = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]  # shares of "yes" by replicate; log odds


def observed(answers: Answers) -> Observations:
    table = Observations()
    labels, scores = answers
    for n, made in enumerate(versions()):
        row = table.version(f"c{made.text}", made.changes, f"c{made.text}.{n}")
        p = None if scores is None else {"yes": float(1 / (1 + np.exp(-scores[n])))}
        given = [Answer(status="ok", value="yes" if one else "no", scores=p) for one in labels[n]]
        table.answers(row, model="m", format="bare", answers=given, score_of="yes")
    return table


def listed(answers: Answers) -> list[Finding]:
    """The hidden findings of a run, of a model that is declared deterministic: no fresh answers help."""
    table = observed(answers)
    major = 2 * answers[0].sum(axis=1) > answers[0].shape[1]
    found = joints(table, table.columns())[2]
    rows = {}
    for cells, placebo in zip(found.cells.tolist(), found.placebo, strict=True):
        *parts, joint = (bool(major[cell]) for cell in cells)
        if placebo or len(set(parts)) > 1 or joint == parts[0]:
            continue
        made = versions()[cells[-1]]
        v = Verdict(
            case_id=f"c{made.text}", variant_id="", order=2, attributes=("gender", "race"), model="m",
            format="bare", outcome="violation", hidden=True, original_output="a", variant_output="b",
        )  # fmt: skip
        rows[table.name(cells[-1])] = cells[-1]
        table.judge(cells[-1], v)
    told = interactions(table, QUESTION, rows)
    return hidden_findings([table], Settings(deterministic={"m": True}, interactions=told))


def texts() -> np.ndarray[Any, Any]:
    return np.array([made.text for made in versions()])


def any_wording(run: int) -> Answers:
    """A deterministic model that reacts to any wording."""
    told = [
        zlib.crc32(repr((run, m.text, *((e.source, e.target) for e in m.changes))).encode()) % 12 > 0
        for m in versions()
    ]
    return np.array(told)[:, None], None


def temperature(run: int) -> Answers:
    """Answers that vary, each text with its own share."""
    rng = np.random.default_rng(run)
    p = 1 / (1 + np.exp(-4 * rng.normal(size=TEXTS)))
    return rng.random((len(versions()), 3)) < p[texts(), None], None


def each_wording(run: int) -> Answers:
    """Answers that vary, each wording with its own share."""
    rng = np.random.default_rng(run)
    p = 1 / (1 + np.exp(-4 * rng.normal(size=len(versions()))))
    return rng.random((len(versions()), 3)) < p[:, None], None


def margins(run: int) -> Answers:
    """Scores without an interaction: gender and race each lower them, and any wording moves them."""
    rng = np.random.default_rng(run)
    down = [sum(0.4 for e in m.changes if e.kind == "swap") for m in versions()]
    score = rng.normal(size=TEXTS)[texts()] + 0.2 * rng.normal(size=len(versions())) - down
    return (score > 0)[:, None], score


def planted(run: int, share: float, *, noise: float = 0.0) -> tuple[Answers, set[str]]:
    """Only both attributes together change the answer, in some texts."""
    rng = np.random.default_rng(run)
    chosen = rng.choice(TEXTS, int(share * TEXTS), replace=False)
    hit = np.isin(texts(), chosen) & np.array([m.joint and not m.placebo for m in versions()])
    base = rng.random(TEXTS) < 0.6
    flipped = rng.random(len(versions())) < noise
    return ((base[texts()] ^ hit ^ flipped)[:, None], None), {f"c{n}" for n in chosen}


def cases(found: list[Finding], *, shown: bool = False) -> set[str]:
    return {f.exemplars[0].partition(".")[0] for f in found if f.verdict == "shown" or not shown}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "runs", "most"),
    [(any_wording, 30, 0), (temperature, RUNS, 3), (each_wording, RUNS, 3), (margins, RUNS, 3)],
)
def test_without_an_interaction_next_to_none_is_shown(model: Callable[[int], Answers], runs: int, most: int) -> None:
    listed_at_all = shown = 0
    for run in range(runs):
        found = listed(model(run))
        listed_at_all += len(found)
        shown += sum(f.verdict == "shown" for f in found)
        assert all(f.notes and f.interaction == "threshold_crossing" for f in found if f.verdict != "shown")
    assert listed_at_all > runs  # the lattice alone calls many of them hidden
    assert shown <= most  # 0.05 a run


@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
def test_a_pure_interaction_is_listed_in_every_text_and_shown(share: float) -> None:
    answers, chosen = planted(1, share)
    found = listed(answers)
    assert cases(found) == chosen
    assert len(found) == len(chosen)
    assert cases(found, shown=True) == chosen
    assert {f.interaction for f in found} == {"confirmed"}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_among_noise_the_planted_texts_are_listed_first(share: float) -> None:
    shares, shown, false = [], 0, 0
    for run in range(20):
        answers, chosen = planted(run, share, noise=0.01)
        found = listed(answers)
        assert len(found) == len(cases(found))  # one for each text
        shares.append(len(cases(found) & chosen) / len(chosen))
        confirmed = cases(found, shown=True)
        shown, false = shown + len(confirmed & chosen), false + len(confirmed - chosen)
        assert cases(found[: len(confirmed)]) == confirmed
    assert np.mean(shares) >= 0.9
    assert false <= 0.1 * (shown + false) + 2
    if share == 0.4:
        assert shown >= 0.5 * 20 * share * TEXTS


def test_an_interaction_of_two_groups_is_a_claim_about_them() -> None:
    rng = np.random.default_rng(0)
    together = [{e.target_group for e in m.changes} == {"female", "black"} and not m.placebo for m in versions()]
    score = rng.normal(size=TEXTS)[texts()] + 0.2 * rng.normal(size=len(versions())) - 1.0 * np.array(together)
    question = Question(
        outcomes=("yes",), references={"gender": "male", "race": "white"}, primary={"gender": ("female", "male")}
    )
    table = observed(((score > 0)[:, None], score))
    found = {c.groups: c for c in claims(table, question) if c.family == "interaction"}
    claim = found["female+black", "male+white"]
    assert (claim.attribute, claim.scale) == ("gender+race", "log_odds")
    assert claim.verdict == "shown"
    assert claim.estimate == pytest.approx(-1.0, abs=0.2)
    assert claim.texts == TEXTS
    assert found["nonbinary+asian", "male+white"].verdict == "not_determined"
    (one,) = [f for f in of_claims([claim], [table]) if f.code == "INT150"]
    assert (one.verdict, one.attributes, one.p_adjusted) == ("shown", ("gender", "race"), claim.p_adjusted)
    assert one.claim == 0


@pytest.mark.slow
def test_without_an_interaction_few_runs_claim_one() -> None:
    shown = 0
    for run in range(RUNS):
        table = observed(margins(run))
        found = decide(list(family.tested(table, table.columns(), QUESTION)), QUESTION)
        assert found
        shown += any(c.verdict == "shown" for c in found)
    assert shown <= 7  # of 60; at a rate of 5 %, one draw in a hundred has more
