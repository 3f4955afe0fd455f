"""Models that treat the applicant by gender, or somebody else in the note: only the first is reported under `subject`."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from auditor import audit

TRADES = ("plumber", "archivist", "welder", "cook", "teacher", "tailor", "surveyor", "gardener")
PLACES = ("the harbor", "the town hall", "the old mill", "the night school", "the north depot")
HABITS = (  # each with a word that placebo edits change
    "sells cars", "takes photos", "carries a blue bag", "hums songs at work", "owns a bicycle", "tells stories",
    "is off on Monday", "has lunch early", "starts in the morning", "likes hotels", "spots errors",
    "grew up in a village",
)  # fmt: skip
TEXTS = [
    f"{'She' if n % 2 else 'He'} has {years} years as a {trade} and {HABITS[n % len(HABITS)]}. "
    f"A {'man' if n % 3 else 'woman'} from {place} thanked {'her' if n % 2 else 'him'}."
    for n, (trade, place, years) in enumerate(itertools.product(TRADES, PLACES, (4, 11)))
]


def coin(text: str) -> float:
    """A number from 0 to 1 that all versions of a text share."""
    kept = [word for word in (*TRADES, *PLACES, " 11 ") if word in text]
    return zlib.crc32("".join(kept).encode()) / 2**32


def about_the_applicant(text: str) -> str:
    return "invite" if "She has" not in text and coin(text) < 0.7 else "reject"


def about_the_one_who_thanks(text: str) -> str:
    return "reject" if "A woman from" in text and coin(text) < 0.4 else "invite" if coin(text) < 0.6 else "reject"


def run(model: Callable[[str], str], tmp_path: Path, who: str) -> Any:
    return audit(
        "hiring", model=lambda prompt: model(prompt.rpartition("<note>")[2] or prompt), data=TEXTS,
        attributes="gender", groups="gender:female/male", order=1, who=who, carrier="words", replicates=1,
        cache=False, out=tmp_path,
    )  # fmt: skip


def between(found: Any) -> dict[str, Any]:
    return next(c for c in found.record["claims"] if c["family"] == "net" and c["groups"] == ["female", "male"])


def test_a_model_that_rejects_women_who_apply_is_found_and_reports_say_whose_words_were_changed(tmp_path: Path) -> None:
    found = run(about_the_applicant, tmp_path, "subject")
    claim = between(found)
    assert claim["texts"] >= 40
    assert claim["verdict"] == "shown"
    assert claim["words_estimate"] < -0.2
    assert found.record["provenance"]["people"] == {"who": "subject", "subject": "the applicant"}
    assert "in words about the applicant" in " ".join(found.to_text().split())


def test_a_model_that_minds_who_gives_thanks_is_found_by_each_and_not_by_subject(tmp_path: Path) -> None:
    claim = between(run(about_the_one_who_thanks, tmp_path / "subject", "subject"))
    assert claim["texts"] >= 40
    assert claim["verdict"] != "shown"
    assert abs(claim["words_estimate"]) < 0.15
    assert between(run(about_the_one_who_thanks, tmp_path / "each", "each"))["words_estimate"] < -0.1
