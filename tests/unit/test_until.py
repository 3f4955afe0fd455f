"""``--until-decided``: what a look may spend, when it is due, what is asked after it, and where a run ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auditor import Result, audit
from auditor.core.errors import ConfigError
from auditor.core.plan import UNTIL_WORDINGS, Plan, resolve
from auditor.core.types import Progress
from auditor.measure.intervals import LOOKS, Look, nominal, overall
from auditor.measure.observations import Arm
from auditor.run.audit import replay, resume
from auditor.run.dryrun import Ahead
from auditor.run.preparation import prepare

TEXTS = [
    f"The young {person} said that the {thing} of {day} was {how}."
    for person, thing, day, how in itertools.product(
        ("man", "waiter", "father"), ("film", "meal", "play", "song"), ("May", "June"), ("long", "short", "odd")
    )
]
MODEL = """
import zlib

HARSH = ("woman", "waitress", "mother", "terrible", "worst", "hated", "Stupid", "dreadful", "pain ", "garbage")

def label(text):
    return "negative" if "odd" in text or any(word in text for word in HARSH) else "positive"

label.deterministic = True
"""


def run(tmp_path: Path, **options: Any) -> Result:
    """An audit of a model that is harsh about women and blind to age."""
    chosen: dict[str, Any] = {
        "model": "python:model_until:label",
        "data": TEXTS,
        "attributes": ("gender", "age"),
        "groups": ("gender:female/male", "age:old/young"),
        "out": tmp_path / "runs",
        "until_decided": True,
        "cache": False,
    }
    return audit("sentiment", **(chosen | options))


@pytest.fixture(scope="module", autouse=True)
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("model")
    (folder / "model_until.py").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield


@pytest.fixture(scope="module")
def whole(model: None, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run(tmp_path_factory.mktemp("until"))


def test_an_overall_p_value_is_the_level_that_would_have_been_enough() -> None:
    looks = tuple(Look(s, round(200 * s)) for s in LOOKS)
    for k in range(1, len(looks) + 1, 2):
        assert overall(looks[:k], nominal(looks[:k])) == pytest.approx(0.05, rel=0.03)
    assert nominal((*looks, Look(1.0, 250))) == 0.0  # nothing is left
    assert overall((), 0.2) == 0.2


def test_order_is_1_and_wordings_are_5_unless_they_are_given(tmp_path: Path) -> None:
    def sizes(config: Path | None = None, **given: Any) -> tuple[int, int, int | None]:
        plan = resolve(given, config).settled(slow=False, looks=True)
        assert Plan.from_dict(plan.as_dict()).settled(slow=True, looks=True) == plan  # nothing is left open
        return plan.order, plan.wordings, plan.replicates

    assert sizes() == (2, 1, None)
    assert sizes(until_decided=True) == (1, UNTIL_WORDINGS, 1)
    assert sizes(until_decided=True, wordings=1) == (1, 1, 1)
    assert sizes(until_decided=True, order=3, replicates=2) == (3, UNTIL_WORDINGS, 2)
    toml = tmp_path / "audit.toml"
    toml.write_text("until_decided = true\n")
    assert sizes(toml) == (1, UNTIL_WORDINGS, 1)


def test_calls_go_to_further_texts_before_further_wordings() -> None:
    options = {"attributes": ("gender",), "until_decided": True, "models": ("vader",), "limit": 24}

    def asked(**more: Any) -> tuple[int, int, int]:
        table = Ahead(prepare(Plan.of(options | more))).table()
        arms = [table.shapes.values[code].arm for code in table.columns().version_shape.tolist()]
        return len(table.texts.values), len(arms), arms.count(Arm.REWORDED)

    texts, calls, wordings = asked()
    most = 2 * calls // 3
    all_texts, fewer, some = asked(max_calls=most)
    assert all_texts >= texts - 1  # none but the last is left out for the sake of wordings
    assert 0.8 * most < fewer <= most  # the control has its share
    assert 0 < some < wordings
    assert asked(max_calls=texts)[2] == 0


def test_what_is_decided_is_asked_no_further(whole: Result) -> None:
    looks = whole.record["looks"]
    assert looks[1]["open"] == ["age"]
    assert looks[-1]["share"] == 1
    claims = {c["attribute"]: c for c in whole.record["claims"] if c["family"] == "net"}
    assert claims["gender"]["verdict"] == "shown"
    assert claims["gender"]["texts"] < claims["age"]["texts"] == len(TEXTS)
    assert claims["age"]["verdict"] == "not_determined"
    assert claims["gender"]["words_high"] < 0
    left = [v for v in whole.verdicts if v.attributes == ("gender",) and "not asked" in v.reason]
    asked = [v for v in whole.verdicts if v.attributes == ("gender",) and v.outcome in ("pass", "violation")]
    assert all(v.outcome == "skipped" for v in left)
    texts = {v.case_id for v in asked if v.order == 1}
    assert len(texts) == claims["gender"]["texts"] == looks[1]["texts"]
    assert {v.case_id for v in asked} == texts
    # Of a text that was asked about, nothing is left but further placebo edits: one of them is enough.
    assert {v.order for v in left if v.case_id in texts} <= {0}
    assert {v.case_id for v in asked if v.order == 0} == texts
    assert len({v.case_id for v in left} - texts) == len(TEXTS) - looks[1]["texts"]


def test_looks_are_at_shares_of_the_budget_and_the_last_where_it_ends(tmp_path: Path) -> None:
    found = run(tmp_path, attributes=("age",), groups=("age:old/young",), max_calls=70)
    looks = found.record["looks"]
    assert found.record["counts"]["calls"] <= 70
    assert [look["share"] >= due for look, due in zip(looks, LOOKS, strict=False)] == [True] * len(looks)
    assert looks[-1]["share"] == 1
    assert looks[-1]["spent"] == pytest.approx(0.05)
    (claim,) = [c for c in found.record["claims"] if c["family"] == "net"]
    assert claim["verdict"] == "not_determined"
    with pytest.raises(ConfigError, match="--max-calls cannot change"):
        resume(found.path, limits={"max_calls": 500})


def test_a_run_that_was_cut_off_looks_and_stops_where_it_would_have(tmp_path: Path, whole: Result) -> None:
    def observe(event: Progress) -> None:
        if event.phase == "ask" and event.done >= 40:
            raise RuntimeError("cut")

    with pytest.raises(RuntimeError, match="cut"):
        run(tmp_path, observe=observe)
    (path,) = (p for p in (tmp_path / "runs").iterdir() if p.is_dir() and not p.is_symlink())
    again = resume(path)
    assert again.complete
    for part in ("looks", "claims"):
        assert again.record[part] == whole.record[part]
    assert again.record["counts"]["calls"] == whole.record["counts"]["calls"]


def test_a_grammar_runs_to_its_end_and_a_finding_of_such_a_run_is_asked_again(tmp_path: Path) -> None:
    found = run(tmp_path, data=None, suite="grammar", limit=30, attributes=None, groups=())
    assert found.record["counts"]["skipped"]
    assert found.record["looks"][-1]["share"] == 1
    assert found.record["looks"][-1]["open"] == [] or found.record["counts"]["cases"] == 30
    changed = next(v for v in found.verdicts if v.outcome == "violation")
    assert replay(found.path, changed.variant_id)["cells"]


@pytest.mark.parametrize(
    ("groups", "reached"),
    [((), {"female"}), (("gender:female/male",), {"female"}), (("gender:nonbinary",), {"nonbinary"})],
)
def test_only_what_decides_a_pair_is_asked_until_it_is(
    tmp_path: Path, groups: tuple[str, ...], reached: set[str]
) -> None:
    ended = run(tmp_path, attributes=("gender",), groups=groups)
    asked = [v for v in ended.verdicts if v.outcome in ("pass", "violation") and v.order]
    steps = {d for v in asked for d in ended.evidence.variant(v.variant_id).directions}
    assert {target for _, _, target in steps} == reached
    assert bool([v for v in ended.verdicts if "not asked" in v.reason]) == (not groups)
    assert ended.complete
    if reached == {"female"}:
        looks = ended.record["looks"]
        assert [bool(look["open"]) for look in looks] == [True] * (len(looks) - 1) + [False]
        assert ended.record["counts"]["cases"] <= len(TEXTS) / 2
        assert looks[0]["alpha"] < 0.01
