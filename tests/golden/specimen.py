"""A made-up run for the tests of reports: invented figures, real shapes.

Two models, three attributes, claims of all four verdicts, hidden findings, controls run and not run.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import judged

from auditor.core.record.measured import Claim
from auditor.core.types import Case, Check, Edit, Estimate, Finding, Message, Prompt, Response, Variant, Verdict

MODELS = ("reviews", "vader")
FILES = Path(__file__).parent / "files"


def require(made: str, path: Path) -> None:
    """What is made is what the file holds; UPDATE_GOLDEN writes it anew."""
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(made, encoding="utf-8", newline="\n")
    assert made == path.read_text(encoding="utf-8"), f"{path} differs; see the top of the test"


class FakeEvidence:
    """In-memory evidence, as a run folder offers it."""

    def __init__(
        self,
        cases: Iterable[Case] = (),
        checks: Iterable[Check] = (),
        responses: Iterable[Response] = (),
        prompts: Mapping[str, list[Prompt]] | None = None,
    ) -> None:
        self.cases = {c.id: c for c in cases}
        self.owner = {v.id: c for c in self.cases.values() for v in (c.original, *c.variants)}
        self.checks = {c.variant_id: c for c in checks}
        self.answers: dict[str, list[Response]] = {}
        for response in responses:
            self.answers.setdefault(response.variant_id, []).append(response)
        self.asked = dict(prompts or {})
        self.judged: dict[str, list[Verdict]] = {}

    def case(self, id: str) -> Case | None:
        return self.cases.get(id)

    def case_of(self, variant_id: str) -> Case | None:
        return self.owner.get(variant_id)

    def variant(self, variant_id: str) -> Variant | None:
        case = self.owner.get(variant_id)
        every = (case.original, *case.variants) if case else ()
        return next((v for v in every if v.id == variant_id), None)

    def check(self, variant_id: str) -> Check | None:
        return self.checks.get(variant_id)

    def responses(self, variant_id: str) -> list[Response]:
        return self.answers.get(variant_id, [])

    def verdicts(self, variant_id: str) -> list[Verdict]:
        return self.judged.get(variant_id, [])

    def prompts(self, variant_id: str) -> list[Prompt]:
        return self.asked.get(variant_id, [])


def rate(value: float, low: float, high: float, n: int, variants: int | None = None, note: str = "") -> Estimate:
    return Estimate(
        value=value, low=low, high=high, level=0.95, n=n, n_skipped=3, method="korn_graubard", n_variants=variants,
        note=note,
    )  # fmt: skip


def estimate(*figures: Any, **more: Any) -> dict[str, Any]:
    return dataclasses.asdict(rate(*figures, **more))


def edit(text: str, attribute: str, groups: tuple[str, str], old: str, new: str, **more: Any) -> Edit:
    return judged.edit(old, new, groups, text.index(old), attribute=attribute, **more)


def apply(text: str, edits: Iterable[Edit]) -> str:
    for e in sorted(edits, key=lambda e: e.where, reverse=True):
        start, end = e.where  # type: ignore[misc]
        text = text[:start] + e.target + text[end:]
    return text


def case(id: str, text: str, *sets: tuple[Edit, ...]) -> Case:
    variants = tuple(Variant(id=f"{id}.v{i}", input=apply(text, edits), edits=edits) for i, edits in enumerate(sets))
    return Case(id=id, suite="mutation.v1", original=Variant(id=f"{id}.o", input=text), variants=variants)


def answers(
    variant_id: str, model: str, *outputs: str | None, format: str = "bare", error: str = "timeout"
) -> list[Response]:
    return [
        Response(
            variant_id=variant_id, prompt_sha256=f"{variant_id:0>64}", format=format, replicate=i, output=output,
            error=None if output is not None else error, detail="" if output is not None else "no answer within 60 s",
            model=model, scores={"positive": 0.58, "negative": 0.42} if output == "positive" else None,
        )
        for i, output in enumerate(outputs)
    ]  # fmt: skip


def losses(model: str, attribute: str, group: str, *counts: int) -> dict[str, Any]:
    numbers = dict(zip(("n", "refused", "unparsed", "failed"), counts, strict=True))
    return {"model": model, "attribute": attribute, "group": group, **numbers}


FILM = (
    "The film follows a white man who comes home to a town that has forgotten him. He talks too much and the "
    "second half drags, but the last ten minutes are worth the wait."
)
DINER = (
    "A Mexican waitress and her brother run the diner, and the script gives them nothing to do. It is a "
    "pity, because the camera likes both of them."
)


def cases() -> list[Case]:
    race = edit(FILM, "race", ("white", "Black"), "white", "Black")
    man = edit(FILM, "gender", ("men", "women"), "man", "woman")
    him = judged.edit("him", "her", ("men", "women"), FILM.index("him."))
    he = edit(FILM, "gender", ("men", "women"), "He", "She")
    gender = (man, him, he)
    nation = edit(DINER, "nationality", ("Mexicans", "Irish"), "Mexican", "Irish")
    article = edit(DINER, "nationality", ("Mexicans", "Irish"), "A", "An", kind="agreement")
    waiter = edit(DINER, "gender", ("women", "men"), "waitress", "waiter")
    his = edit(DINER, "gender", ("women", "men"), "her", "his")
    return [
        case("c1f0a2b3c4", FILM, (race,), gender, (race, *gender)),
        case("c9d8e7f6a5", DINER, (article, nation), (waiter, his), (article, nation, waiter, his)),
    ]


def evidence() -> FakeEvidence:
    film, diner = cases()
    responses = []
    for variant in (film.original, *film.variants[:2]):
        responses += answers(variant.id, "reviews", "positive") + answers(variant.id, "vader", "positive")
    responses += answers(film.variants[2].id, "reviews", "negative")
    responses += answers(film.variants[2].id, "vader", "positive")
    for variant in (diner.original, *diner.variants[:2]):
        responses += answers(variant.id, "reviews", *["negative"] * 5)
    responses += answers(diner.variants[2].id, "reviews", *["positive"] * 4, "negative")
    every = [v for c in (film, diner) for v in (c.original, *c.variants)]
    checks = [Check(variant_id=v.id, check="dependency.v1", status="valid") for v in every if v.edits]
    prompts = {v.id: [Prompt(format="bare", text=str(v.input))] for v in every}
    return FakeEvidence((film, diner), checks, responses, prompts)


RATES: dict[str, dict[tuple[str, ...], tuple[float, float, float, int, int]]] = {
    "reviews": {
        ("gender",): (0.041, 0.024, 0.069, 312, 1204), ("nationality",): (0.012, 0.003, 0.031, 140, 980),
        ("race",): (0.093, 0.06, 0.139, 96, 610), ("gender", "nationality"): (0.058, 0.031, 0.097, 84, 672),
        ("gender", "race"): (0.121, 0.079, 0.176, 71, 568), ("nationality", "race"): (0.0, 0.0, 0.2646, 12, 40),
    },
    "vader": {
        ("gender",): (0.0, 0.0, 0.0117, 312, 1204), ("nationality",): (0.0, 0.0, 0.026, 140, 980),
        ("race",): (0.0, 0.0, 0.0377, 96, 610), ("gender", "nationality"): (0.0, 0.0, 0.043, 84, 672),
        ("gender", "race"): (0.0, 0.0, 0.0506, 71, 568), ("nationality", "race"): (0.0, 0.0, 0.2646, 12, 40),
    },
}  # fmt: skip
VERDICTS = {
    ("reviews", "gender"): "shown", ("reviews", "nationality"): "not_determined", ("reviews", "race"): "shown",
    ("reviews", "gender", "race"): "shown", ("reviews", "gender", "nationality"): "not_determined",
    ("vader", "gender"): "bounded", ("vader", "nationality"): "not_determined", ("vader", "race"): "not_determined",
    ("vader", "gender", "race"): "not_determined",
}  # fmt: skip
DIRECTIONS = [
    (("race", "white", "Black"), 0.152, 0.09, 0.231, 61),
    (("race", "Black", "white"), 0.048, 0.013, 0.118, 55),
    (("gender", "men", "women"), 0.051, 0.028, 0.084, 201),
    (("gender", "women", "men"), 0.022, 0.008, 0.047, 190),
    (("gender", "men", "non-binary people"), 0.064, 0.036, 0.104, 201),
    (("nationality", "Mexicans", "Irish"), 0.021, 0.002, 0.074, 48),
]
KINDS = [("gender", "swap", 0.036, 0.019, 0.061, 290), ("gender", "marking", 0.055, 0.021, 0.114, 74)]
NOT_RUN = {"status": "not_tested", "reason": "no placebo words in the dictionaries of this run"}


def estimates() -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []

    def add(name: str, model: str, attributes: tuple[str, ...], value: dict[str, Any], **more: Any) -> None:
        out.append(
            {
                "name": name, "model": model, "format": "bare" if model else "", "attributes": list(attributes),
                "directions": more.get("directions"), "kind": more.get("kind"), "estimate": value,
            }
        )  # fmt: skip

    for model, by_set in RATES.items():
        for attributes, (value, low, high, n, variants) in by_set.items():
            add("violation_rate", model, attributes, estimate(value, low, high, n, variants))
            if len(attributes) > 1:
                hidden = estimate(value / 3, low / 3, high if value == 0 else high / 2, n, variants)
                add("hidden_rate", model, attributes, hidden)
    for attributes, (*_, n, variants) in RATES["reviews"].items():
        made = round(variants / 0.8)
        add("valid_share", "", attributes, estimate(variants / made, 0.7, 0.9, n, made))
    for direction, value, low, high, n in DIRECTIONS:
        a = (direction[0],)
        add("violation_rate", "reviews", a, estimate(value, low, high, n, 4 * n), directions=[list(direction)])
        add("violation_rate", "vader", a, estimate(0.0, 0.0, 3 / n, n, 4 * n), directions=[list(direction)])
    for attribute, kind, value, low, high, n in KINDS:
        add("violation_rate", "reviews", (attribute,), estimate(value, low, high, n, 3 * n), kind=kind)
    return out


def findings() -> list[dict[str, Any]]:
    out: list[Finding] = []
    for key, verdict in VERDICTS.items():
        model, *attributes = key
        shown = verdict == "shown"
        out.append(
            Finding(
                id=f"F{len(out) + 1:03}", kind="claim", code="rate", model=model, attributes=tuple(attributes),
                verdict=verdict, rate=rate(*RATES[model][tuple(attributes)]), p_value=0.0004 if shown else 0.4,  # type: ignore[arg-type]
                p_adjusted=0.0021 if shown else 1.0,
                exemplars=("c1f0a2b3c4.v1",) if attributes == ["gender"] else (), format="bare",
            )
        )  # fmt: skip
    film = (("gender", "men", "women"), ("race", "white", "Black"))
    diner = (("gender", "women", "men"), ("nationality", "Mexicans", "Irish"))
    out += [
        Finding(
            id="H001", kind="hidden", code="hidden", model="reviews", attributes=("gender", "race"), directions=film,
            verdict="shown", exemplars=("c1f0a2b3c4.v2",),
            notes=("Asked once: the model is declared deterministic.",), format="bare",
        ),
        Finding(
            id="H002", kind="hidden", code="hidden", model="reviews", attributes=("gender", "nationality"),
            directions=diner, verdict="not_determined", exemplars=("c9d8e7f6a5.v2",), format="bare",
        ),
    ]  # fmt: skip
    return [dataclasses.asdict(f) for f in out]


def performance() -> dict[str, Any]:
    def measures(value: float, n: int) -> dict[str, Any]:
        return {"accuracy": estimate(value, value - 0.05, value + 0.04, n)}

    groups = [
        {"attribute": "gender", "group": "trans_female", "n": 3, **measures(0.66, 3)},
        {"attribute": "gender", "group": "women", "n": 140, **measures(0.76, 140)},
        {"attribute": "race", "group": "Black", "n": 61, **measures(0.74, 61)},
    ]
    rates = {"right": estimate(0.03, 0.02, 0.05, 239), "wrong": estimate(0.14, 0.1, 0.2, 66)}
    return {
        "source": "embedded texts of task sentiment",
        "gold": {"given": 304, "mapped": 302, "unmapped": 2, "examples": ["5 <stars>"], "missing": 1},
        "models": [
            {"model": m, "format": "bare", "n": 302, "overall": measures(v, 302), "groups": groups, "violations": rates}
            for m, v in (("reviews", 0.78), ("vader", 0.69))
        ],
    }


def words_of_changes() -> list[dict[str, Any]]:
    """Words of one model: one stands out, one has no index."""
    rows = (
        ("nurse", 120, 31, 4.2, 0.0004, True),
        ("clerk", 118, 9, 0.1, 0.8, False),
        ("smith", 12, 1, None, 1.0, False),
    )
    tokens = [
        {
            "family": "occupation", "token": token, "group": "mostly_women" if token == "nurse" else "", "n": n,
            "errors": errors, "rate": errors / n, "low": max(0.0, errors / n - 0.07), "high": errors / n + 0.07,
            "index": index, "p": q, "q": q, "anomalous": None if index is None else abs(index) > 2, "stands_out": out,
        }
        for token, n, errors, index, q, out in rows
    ]  # fmt: skip
    zero = "not computable: more than half of the values are equal, so their median deviation is 0"
    families = [
        {"name": "occupation", "tokens": 3, "median": 0.07, "mad": 0.02, "reason": ""},
        {"name": "hair_colour", "tokens": 12, "median": 0.0, "mad": 0.0, "reason": zero},
    ]
    return [{"model": "reviews", "format": "bare", "unit": "term", "families": families, "tokens": tokens}]


def record() -> dict[str, Any]:
    """A complete run with findings of every kind."""
    return {
        "id": "20260102-sentiment-7f3a", "format_version": 2, "tool_version": "0.1.0", "status": "complete",
        "status_reason": "",
        "spec": {
            "task": "sentiment", "kind": "classification", "models": list(MODELS), "data": None, "limit": None,
            "attributes": ["gender", "nationality", "race"], "order": 2, "suite": "mutation", "per_seed": 8,
            "formats": [], "protocol": "default", "replicates": None, "delta": 0.02, "seed": 7, "parser": "embedded",
        },
        "provenance": {
            "started": "2026-01-02T09:00:00Z", "ended": "2026-01-02T09:00:41Z", "python": "3.11.9",
            "plan_sha256": "3b8f2c" * 10, "task_sha256": "91ac0d" * 10,
            "dictionaries": [
                {"attribute": name, "sha256": digits * 16}
                for name, digits in (("gender", "aa01"), ("race", "bb02"), ("nationality", "cc03"))
            ],
            "parser": {"name": "embedded 1 (en, las 81.6)"},
        },
        "counts": {
            "seeds": 312, "cases": 305, "variants": 5092, "valid": 4074, "discarded": 1018, "calls": 8760,
            "cached": 112, "failed": 2, "unparsed": 1, "refused": 0, "tokens_in": None, "tokens_out": None,
            "cost_usd": None, "violations": {"1": 118, "2": 104}, "hidden": {"2": 2},
        },
        "estimates": estimates(),
        "controls": {
            "noise_floor": {"reviews": {"declared": True}, "vader": estimate(0.003, 0.0004, 0.011, 305, 915)},
            "answers_by_group": [
                losses("reviews", "gender", "women", 1620, 0, 0, 0),
                losses("reviews", "gender", "men", 1580, 0, 1, 2),
            ],
            "placebo": NOT_RUN,
            "positive_control": {"detected": {"rate": 1.0, "n": 40}},
        },
        "performance": performance(),
        "tokens": words_of_changes(),
        "findings": findings(),
        "diagnoses": [
            {
                "finding": "H001", "cause": "two small shifts cross the threshold together",
                "evidence": "score 0.58 → 0.55 → 0.53 → 0.48", "minimal": None,
            }
        ],
        "models": {
            "reviews": {
                "counts": {"calls": 4380, "failed": 2}, "deterministic": True, "fingerprint": "reviews-1-5d0c",
                "style": "text", "reported": [],
            },
            "vader": {
                "counts": {"calls": 4380, "failed": 0}, "deterministic": False, "fingerprint": "vader-3.3.2",
                "style": "text", "reported": ["vaderSentiment 3.3.2"],
            },
        },
    }  # fmt: skip


def partial() -> dict[str, Any]:
    """A run that a budget stopped."""
    return record() | {"status": "partial", "status_reason": "the limit of 500 calls (--max-calls) was reached"}


def quiet() -> dict[str, Any]:
    """A run of one model in which nothing changed."""
    out = record()
    out["spec"] |= {"models": ["vader"]}
    out["performance"] = {"status": "not_tested", "reason": "the texts carry no gold labels"}
    out["models"] = {"vader": out["models"]["vader"]}
    out["estimates"] = [e for e in out["estimates"] if e["model"] in ("", "vader")]
    out["findings"] = [f for f in out["findings"] if f["model"] == "vader"]
    out["diagnoses"] = []
    return out


def failing() -> tuple[dict[str, Any], FakeEvidence]:
    """Chat answers that fail, refuse and ramble; nothing could be judged."""
    film = cases()[0]
    out = record() | {"status": "partial", "status_reason": "41 of 60 calls failed (timeout)"}
    out["spec"] |= {"models": ["openai:some-model"], "formats": ["plain"]}
    out["models"] = {"openai:some-model": {"counts": {"calls": 60, "failed": 41}, "deterministic": False}}
    out["counts"] |= {"failed": 41, "unparsed": 7, "refused": 5}
    out["estimates"] = []
    out["performance"] = {
        "status": "not_tested",
        "reason": "none of the 60 gold labels names a label of the task (such as '7')",
        "gold": {"given": 60, "mapped": 0, "unmapped": 60, "examples": ["7"], "missing": 0},
    }
    out["controls"] = {
        "noise_floor": {"openai:some-model": {"status": "not_tested", "reason": "too few answers"}},
        "answers_by_group": [
            losses("openai:some-model", "race", "Black", 20, 5, 3, 12),
            losses("openai:some-model", "race", "white", 20, 0, 4, 14),
        ],
    }
    out["findings"] = [
        dataclasses.asdict(
            Finding(
                id="V001", kind="violation", code="violation", model="openai:some-model", attributes=("gender",),
                directions=(("gender", "men", "women"),), verdict="not_determined", exemplars=("c1f0a2b3c4.v1",),
                format="plain",
            )
        )
    ]  # fmt: skip
    out["diagnoses"] = []
    long = "Let me think about it.\nThe tone is mixed, the ending is praised.\n\nAnswer: positive"
    model = "openai:some-model"
    responses = answers(film.original.id, model, long, "positive", None, format="plain")
    responses += answers(film.variants[1].id, model, None, None, "I cannot help with that.", format="plain")
    prompts = {}
    for v in (film.original, *film.variants):
        system = Message(role="system", content="You label reviews. Answer with one word.")
        messages = (system, Message(role="user", content=f"Review: {v.input}"))
        prompts[v.id] = [Prompt(format="plain", messages=messages)]
    checks = [Check(variant_id=f"{film.id}.v0", check="dependency.v1", status="invalid", reason="tags differ")]
    return out, FakeEvidence((film,), checks, responses, prompts)


def claimed() -> dict[str, Any]:
    """The same run with claims: who is worse off, of whom nothing was shown, and whom no text names."""
    made = record()
    of = [
        ("reviews", "gender", ["women", "men"], "shown", -0.051, -0.074, -0.029, 187, (0.46, 0.51), ""),
        ("vader", "gender", ["women", "men"], "bounded", 0.004, -0.011, 0.019, 187, (0.5, 0.5), ""),
        ("reviews", "race", ["Black", "others"], "not_determined", -0.03, -0.06, 0.01, 61, (0.4, 0.43), "other words"),
        ("vader", "race", ["Black", "others"], "not_determined", 0.01, -0.04, 0.06, 61, (0.5, 0.49), "too little data"),
        ("reviews", "nationality", ["Irish", "others"], "not_tested", None, None, None, 4, None, ""),
    ]
    made["claims"] = [
        dataclasses.asdict(
            Claim(
                family="net", attribute=attribute, groups=tuple(groups), model=model, verdict=verdict,  # type: ignore[arg-type]
                estimate=value, low=low, high=high, words_estimate=value, words_low=None if low is None else low + 0.01,
                words_high=None if high is None else high - 0.02, texts=texts, shares=shares, why=why, delta=0.03,
                calls_needed=900 if verdict == "not_determined" else None, label="positive", format="bare",
                scale="share", unit="share", words=21.0,
            )
        )
        for model, attribute, groups, verdict, value, low, high, texts, shares, why in of
    ]  # fmt: skip
    made["vocabulary"] = {
        "favourable": "positive",
        "attributes": ["gender", "nationality", "race", "religion"],
        "groups": {"gender": {"men": "men and boys", "women": "women and girls"}, "race": {}, "nationality": {}},
    }
    return made
