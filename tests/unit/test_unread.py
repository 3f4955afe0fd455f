"""A model whose answers cannot be read: the run says so, is not complete, and names the next command."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from auditor import audit, models
from auditor.core.errors import ContentFiltered
from auditor.core.protocols import RENDERERS, Model, Reply
from auditor.core.types import Request
from auditor.models.offline import Vader
from auditor.report import run_checks
from auditor.run.audit import Result

TEXTS = ["My mother is a doctor.", "His Black sister is kind.", "Her Indian brother sings in a choir."]


def asked(model: Any, **more: Any) -> Result:
    return audit("sentiment", model=model, data=TEXTS, order=1, per_seed=2, cache=False, **more)


def test_a_run_without_one_readable_answer_is_not_complete() -> None:
    result = asked(lambda text: "purple \x1b[31m<b>monkey</b>\nRun: x")
    assert not result.complete
    ((name, model),) = result.record["models"].items()
    reason = result.record["status_reason"]
    quoted = "purple ⟨U+001B⟩[31m<b>monkey</b> ⏎ Run"
    assert [part for part in (name, "none of its", "expected: negative, positive", quoted) if part not in reason] == []
    assert not {"\x1b", "\n"} & set(reason)
    told = model["unread"]
    assert told["judged_nothing"]
    assert told["answers"] == told["unparsed"] > 0
    assert told["variant"]


def test_the_first_thing_said_of_a_constant_model_is_that_it_cannot_be_judged() -> None:
    label = "positive"
    result = asked(models.wrap(lambda text: label, name="m"), anyway=True)
    assert result.complete
    constant, control = result.record["cautions"]
    (name,) = result.record["models"]
    counts = result.record["counts"]
    n = counts["calls"] + counts["cached"]
    assert constant == {"code": "constant_answers", "model": name, "format": "", "n": n, "of": n, "label": label}
    assert (control["code"], control["n"]) == ("control_not_seen", 0)
    first = f"{name} cannot be judged: all {n} readable answers are “{label}”"
    lines = RENDERERS.create("terminal").render(result.run, result.evidence).splitlines()
    assert lines[1].startswith(f"– {first}")
    page = RENDERERS.create("html").render(result.run, result.evidence)
    after = page.partition('<p class="headline')[2]
    assert after.partition("</span> ")[2].startswith(html.escape(first, quote=False))
    assert "the positive control was not seen" in page


def test_one_label_in_nearly_all_answers_is_told_and_less_is_not() -> None:
    def told(n: int) -> dict[str, Any]:
        """What is said of one label, where every ``n``-th text gets the other."""
        given: dict[str, str] = {}  # a text that is asked again gets the same answer

        def model(text: str) -> str:
            return given.setdefault(text, "positive" if (len(given) + 1) % n else "negative")

        record = audit("sentiment", model=model, limit=8, cache=False, replicates=1, anyway=True).record
        return next((c for c in record["cautions"] if c["code"] == "one_label"), {})

    rare = told(60)
    assert rare["label"] == "positive"
    assert 0.95 * rare["of"] <= rare["n"] < rare["of"]
    assert not told(10)


def test_prompts_that_a_limit_kept_from_being_asked_are_not_failed() -> None:
    result = asked(["vader", lambda text: "positive"], max_calls=40, anyway=True)
    assert not result.complete
    assert result.record["counts"]["failed"] == 0
    assert sum(g["failed"] for g in result.record["controls"]["answers_by_group"]) == 0
    reasons = {v.reason for v in result.verdicts if v.outcome == "skipped"}
    assert any("not asked" in reason for reason in reasons)
    assert not any("failed" in reason for reason in reasons)


def test_a_warning_stands_in_every_report_where_most_answers_are_unreadable() -> None:
    result = asked(lambda text: "positive" if text.startswith("My") or "Indian" in text else "no idea")
    assert result.complete
    (model,) = result.record["models"].values()
    told = model["unread"]
    assert not told["judged_nothing"]
    assert 2 * told["unparsed"] > told["answers"]
    for form in ("terminal", "html", "markdown"):
        text = " ".join(RENDERERS.create(form).render(result.run, result.evidence).split())
        for part in (f"{told['unparsed']} of {told['answers']} answers", "no idea", "expected: negative, positive"):
            assert part in text, form


MANY = [
    f"My {who} is a {what} person." for who in ("mother", "son", "wife", "uncle") for what in ("kind", "loud", "shy")
]


def many(model: Any, **more: Any) -> Result:
    return audit(
        "sentiment", model=model, data=MANY, **{"attributes": "gender", "cache": False, "replicates": 3} | more
    )


@pytest.mark.parametrize("read", [lambda n: n % 3 == 0 or n > 40, lambda n: n <= 11], ids=["now and then", "at first"])
def test_a_model_that_is_often_read_is_asked_everything(read: Callable[[int], bool]) -> None:
    calls: list[str] = []

    def model(text: str) -> str:
        calls.append(text)
        return "positive" if read(len(calls)) else "hmm"

    found = many(model)
    assert "not asked further" not in found.record["status_reason"]
    assert len(calls) > 100


class Kept(Model):
    """Answers by ``answer``; its answers may be cached."""

    costs = "nothing"
    name, style, deterministic, cacheable, max_batch = "kept", "chat", False, True, 1
    fingerprint = "kept:test_unread"

    def __init__(self, answer: Callable[[str], str], *, cut_off: bool = False) -> None:
        self.answer, self.cut_off, self.calls = answer, cut_off, 0

    async def generate(self, batch: Any) -> list[Any]:
        self.calls += len(batch)
        return [Reply(self.answer(r.prompt.messages[-1].content), cut_off=self.cut_off) for r in batch]


def test_what_cannot_be_read_is_never_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    known = re.compile("mother|kind|wonderful|terrible|best|worst", re.IGNORECASE)
    half = Kept(lambda text: "Answer: positive" if known.search(text) else "hmm")
    counts = many(half, cache=True).record["counts"]
    assert 0 < counts["unparsed"] < counts["calls"] == half.calls
    again = Kept(lambda text: "Answer: negative")
    counts_again = many(again, cache=True).record["counts"]
    assert again.calls == counts_again["calls"] == counts["unparsed"]
    assert counts_again["cached"] == counts["calls"] - counts["unparsed"]
    assert counts_again["unparsed"] == 0


def test_an_answer_that_was_cut_off_is_told_with_the_option_that_helps(tmp_path: Path) -> None:
    found = many(Kept(lambda text: "The review says that", cut_off=True), out=tmp_path)
    (told,) = (m["unread"] for m in found.record["models"].values())
    n = told["cut_off"]
    assert n == told["unparsed"] > 0
    raise_it = f"{n} were cut off at the limit on tokens: raise it with --server max-tokens=N"
    assert raise_it in found.to_text(full=True)
    assert "--server max-tokens" in found.record["status_reason"]
    lines = [json.loads(line) for line in (found.path / "responses.jsonl").read_text().splitlines()]
    assert all(line["cut_off"] for line in lines if "output" in line)
    # One that could be read before the limit is an answer like any other.
    read = many(Kept(lambda text: "Answer: positive", cut_off=True), anyway=True)
    assert read.complete
    assert read.record["counts"]["unparsed"] == 0


def test_what_a_filter_keeps_back_is_an_outcome_of_its_own_by_group() -> None:
    def filtering(text: str) -> str:
        """A provider whose filter keeps back what names women."""
        if re.search(r"\b(mother|sister|she|her|woman)\b", text, re.IGNORECASE):
            raise ContentFiltered("the provider's filter refused")
        return "positive"

    result = asked(filtering, attributes=("gender",))
    counts = result.record["counts"]
    assert counts["filtered"] > 0
    assert counts["failed"] == counts["refused"] == 0
    assert result.complete, result.record["status_reason"]
    groups = {row["group"]: row for row in result.record["controls"]["answers_by_group"]}
    assert groups["female"]["filtered"] == groups["female"]["n"] > 0
    assert groups["male"]["filtered"] == 0
    assert "3 filtered" in next(v.reason for v in result.verdicts if v.outcome == "skipped")
    assert "Filtered" in result.to_text(full=True)
    assert "Filtered" in result.to_html()


class Moved(Vader):
    """An alias that is moved on to the next version mid-run."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.name, self.max_batch, self.names, self.calls = "alias", 1, names, 0

    async def generate(self, batch: Sequence[Request]) -> list[Any]:
        self.calls += 1
        told = self.names[self.calls % len(self.names)]
        found = [reply for reply in await super().generate(batch) if isinstance(reply, Reply)]
        return [r._replace(model_reported=told) for r in found]


def test_a_model_whose_name_changes_mid_run_is_a_banner() -> None:
    for names, banners in ((["m-1"], 0), (["m-1", "m-2"], 1)):
        found = [one for one in run_checks.banners(asked(Moved(*names)).run) if "named 2 models" in one]
        assert len(found) == banners
        assert all("alias named 2 models for its" in one and "“m-1, m-2”" in one for one in found)
