"""Changed prompts: what is compared, which verdict it gets, and how prompts and texts are changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.core.types import Answer, Case, Edit, SourceText, Variant
from auditor.measure import mitigation
from auditor.measure.claims import Question
from auditor.measure.mitigation import Mitigated
from auditor.measure.observations import Observations
from auditor.perturb.dictionaries import load as dictionary
from auditor.perturb.mutation import MutationSuite
from auditor.run.mitigations import BLANK, IGNORE, from_file, make, redactor
from auditor.tasks import load

WORDS = ("woman", "lady", "mother", "wife", "aunt", "widow")
NUMBERS = Question(number=True, unit="points")
Score = Callable[[bool, Random], float]


def edit(word: str, kind: Literal["swap", "placebo"] = "swap") -> Edit:
    group = "female" if kind == "swap" else "male"
    return Edit(
        attribute="gender", kind=kind, source_group="male", target_group=group, source="man", target=word, where=(0, 3),
    )  # fmt: skip


def table(prompts: dict[str, Score], texts: int = 60) -> Observations:
    """Answers of one model: a number for each text about a man, one about a woman, and one placebo."""
    made = Observations()
    versions = {
        (n, kind): made.version(f"t{n}", edits, f"t{n}.{kind}")
        for n in range(texts)
        for kind, edits in (("o", ()), ("v0", (edit(WORDS[n % 6]),)), ("p0", (edit("fellow", "placebo"),)))
    }
    for prompt, score in prompts.items():
        rng = Random(prompt)
        for (n, kind), row in versions.items():
            value = Random(n).gauss(50, 10) + score(kind == "v0", rng)
            made.answers(row, model="m", format=prompt, answers=[Answer(status="ok", value=value)])
    return made


def tried(**prompts: Score) -> Mitigated:
    made = table({"base": lambda woman, rng: -5.0 * woman + rng.gauss(0, 1), **prompts})
    return mitigation.compare(made, NUMBERS, "base")


def test_each_verdict_is_that_of_what_was_planted() -> None:
    found = tried(
        halved=lambda woman, rng: -2.5 * woman + rng.gauss(0, 1),
        turned=lambda woman, rng: 4.0 * woman + rng.gauss(0, 1),
        doubled=lambda woman, rng: -10.0 * woman + rng.gauss(0, 1),
        lower=lambda woman, rng: -5.0 * woman - 20 + rng.gauss(0, 1),
    )
    changes = {c.mitigation: c for c in found.changes}
    assert {name: c.effect for name, c in changes.items()} == {
        "halved": "reduced", "turned": "reversed", "doubled": "larger", "lower": "not_shown",
    }  # fmt: skip
    for name, change in {"halved": 2.5, "turned": 9.0, "doubled": -5.0, "lower": 0.0}.items():
        claim = changes[name].change
        assert claim.low is not None
        assert claim.high is not None
        assert claim.low - 0.3 <= change <= claim.high + 0.3
    assert found.helps() == ["halved"]


def test_accuracy_is_compared_on_texts_with_a_label() -> None:
    made, golds = Observations(), {}
    for n in range(40):
        row = made.version(f"t{n}", (), f"t{n}.o")
        golds[f"t{n}"] = "yes"
        for prompt, right in (("base", True), ("worse", n % 2 == 0)):
            answer = Answer(status="ok", value="yes" if right else "no")
            made.answers(row, model="m", format=prompt, answers=[answer])
    (side,) = mitigation.compare(made, Question(outcomes=("yes",)), "base", golds).sides
    assert (side.what, side.before, side.after, side.texts, side.shown) == ("accuracy", 1.0, 0.5, 40, True)


def cases() -> list[Case]:
    texts = ["She is a nurse and her husband is Italian.", "An old Black woman asked the man for help."]
    seeds = [SourceText(id=str(n), text=t, label=("invite", "reject")[n]) for n, t in enumerate(texts)]
    return list(MutationSuite(seeds=seeds, dictionaries=[dictionary("gender")]).ask(5, Random(0)))


def test_blinding_leaves_no_word_that_tells_versions_apart() -> None:
    redact = redactor([dictionary(name) for name in ("gender", "nationality", "race", "age")])
    for case in cases():
        blind = redact(case)
        assert {str(v.input) for v in blind.variants} == {str(blind.original.input)}
        assert BLANK in str(blind.original.input)
    line = Case(
        id="n1", suite="name_line.v1", original=Variant(id="n1.o", input="Applicant: Emily Larson\n\nRan the shift."),
        variants=(Variant(id="n1.v0", input="Applicant: Lakisha Jones\n\nRan the shift."),),
    )  # fmt: skip
    assert redact(line).original.input == redact(line).variants[0].input == "Ran the shift."


def test_instructions_and_files(tmp_path: Path) -> None:
    task = load("hiring")
    assert make("ignore", task, "chat").task.system.endswith(IGNORE)
    with pytest.raises(ConfigError, match="no prompt"):
        make("ignore", task, "text")
    with pytest.raises(UnknownPlugin):
        make("pray", task, "chat")
    own = tmp_path / "ours.txt"
    own.write_text("Judge the work alone.\n")
    assert from_file(own, task).task.system.endswith("Judge the work alone.")
    own.write_text(" ")
    with pytest.raises(ConfigError, match="empty"):
        from_file(own, task)
    with pytest.raises(ConfigError, match="are not those"):
        from_file(Path("prompts/salary.yaml"), task)
