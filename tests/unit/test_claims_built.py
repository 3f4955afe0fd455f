"""How claims are put together from their tests: which p value counts, what is bounded, what enters no test."""

from __future__ import annotations

import pytest

from auditor.stats.findings import Settings, findings
from auditor.stats.summary import EditInfo, percent
from auditor.types import Finding, Verdict

Labels = dict[tuple[str, str], dict[str, tuple[str, ...]]]


def verdict(
    case: str, name: str, outcome: str, attributes: tuple[str, ...] = ("a",), **more: object
) -> Verdict:
    return Verdict(
        case_id=case,
        variant_id=name,
        order=len(attributes),
        attributes=attributes,
        outcome=outcome,
        model="m",
        format="plain",
        **more,
    )  # type: ignore[arg-type]


class World:
    """Seeds with one variant and one placebo each; the first ``changed`` variants change the answer."""

    def __init__(self, seeds: int, changed: int, replicates: int = 1) -> None:
        self.verdicts, self.placebos = [], []
        self.edits: dict[str, EditInfo] = {}
        self.labels: Labels = {}
        for s in range(seeds):
            case = f"c{s:03d}"
            outcome = "violation" if s < changed else "pass"
            self.verdicts.append(verdict(case, f"{case}.v", outcome))
            self.placebos.append(verdict(case, f"{case}.p", "pass"))
            self.edits[f"{case}.v"] = EditInfo((("a", "x", "y"),), ("swap",))
            self.edits[f"{case}.p"] = EditInfo((), ("placebo",))
            self.labels[case, "plain"] = {
                f"{case}.o": ("yes",) * replicates,
                f"{case}.v": ("no" if s < changed else "yes",) * replicates,
                f"{case}.p": ("yes",) * replicates,
            }

    def claim(self, *, deterministic: bool, **more: object) -> Finding:
        settings = Settings(
            deterministic={"m": deterministic},
            labels={} if deterministic else {"m": self.labels},
            placebos=self.placebos,
            **more,  # type: ignore[arg-type]
        )
        return findings(self.verdicts, self.edits, settings)[0]


def test_a_deterministic_model_is_tested_against_placebo() -> None:
    shown = World(40, 10).claim(deterministic=True)
    assert shown.verdict == "shown"
    assert shown.p_value == pytest.approx(1 / 2**10, rel=1.0)
    assert World(40, 0).claim(deterministic=True).p_value == 1.0


def test_without_repeats_there_is_no_p_value_whatever_placebos_say() -> None:
    found = World(40, 10, replicates=1).claim(deterministic=False)
    assert (found.p_value, found.p_adjusted, found.verdict) == (None, None, "not_determined")
    again = World(40, 10, replicates=3).claim(deterministic=False)
    assert again.p_value is not None
    assert again.verdict == "shown"


def test_cases_that_earlier_answers_led_to_enter_no_test() -> None:
    world = World(12, 0, replicates=3)
    world.placebos = []
    for s in range(30):
        case = f"d{s:02d}"
        world.verdicts.append(verdict(case, f"{case}.v", "violation"))
        world.edits[f"{case}.v"] = EditInfo((("a", "x", "y"),), ("swap",))
        world.labels[case, "plain"] = {f"{case}.o": ("yes",) * 3, f"{case}.v": ("no",) * 3}
    directed = frozenset(f"d{s:02d}" for s in range(30))
    found = world.claim(deterministic=False, directed=directed)
    assert (found.p_value, found.verdict) == (1.0, "not_determined")
    assert found.rate is not None
    assert (found.rate.n, found.rate.value) == (12, 0.0)
    assert world.claim(deterministic=False).verdict == "shown"


@pytest.mark.parametrize(("delta", "verdict"), [(0.051, "bounded"), (0.049, "not_determined")])
def test_a_rate_is_bounded_by_two_one_sided_tests(delta: float, verdict: str) -> None:
    """No change on 59 seeds: the one-sided 95 % limit is 1 − 0.05^(1/59) = 4.95 %, the two-sided one 6.06 %."""
    world = World(59, 0)
    world.placebos = []
    found = world.claim(deterministic=True, delta=delta, positive_control={"m": True})
    assert found.verdict == verdict
    assert "the smallest delta this run could have bounded is 5.0 %" in found.notes


@pytest.mark.parametrize(
    "upper", [1e-9, 0.0004, 0.0041, 0.0414, 0.0499, 0.0994, 0.0996, 0.1, 0.1641, 0.5, 0.99, 0.9914, 1.0]
)
def test_a_smallest_delta_is_never_rounded_down(upper: float) -> None:
    text = percent(upper, up=True)
    assert upper <= float(text) / 100 * (1 + 1e-6)
    assert float(text) - float(percent(upper)) <= 1


def test_the_share_hidden_by_chance_is_told_for_two_attributes_only() -> None:
    notes = {}
    for names in (("a", "b"), ("a", "b", "c")):
        verdicts, edits = [], {}
        labels: Labels = {}
        for s in range(8):
            verdicts.append(verdict(f"c{s}", f"c{s}.v", "violation", names, hidden=s == 0))
            edits[f"c{s}.v"] = EditInfo(tuple((n, "x", "y") for n in names), ("swap",))
            labels[f"c{s}", "plain"] = {f"c{s}.o": ("yes", "yes", "no"), f"c{s}.v": ("no", "no", "yes")}
        found = findings(verdicts, edits, Settings(deterministic={"m": False}, labels={"m": labels}))
        (hidden,) = [f for f in found if f.kind == "hidden"]
        notes[names] = any("by chance" in note for note in hidden.notes)
    assert notes == {("a", "b"): True, ("a", "b", "c"): False}
