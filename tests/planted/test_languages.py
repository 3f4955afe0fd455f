"""Names in five languages and scripts: a model that reads the name line is shown, one that ignores it is not."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

import pytest

from auditor import Result, audit
from auditor.core.types import SourceText
from auditor.perturb.name_lines import END
from auditor.tasks import load
from auditor.text.languages import load as load_language

LANGUAGES = ("de", "ar", "hi", "ja", "pl")  # Latin script and others, one from right to left, one without blanks
GROUP = {"de": "turkish", "ar": "christian", "hi": "muslim", "ja": "korean", "pl": "ukrainian"}


def margin(text: str) -> float:
    return 4 * int(hashlib.sha256(text[-12:].encode()).hexdigest()[:8], 16) / 0xFFFFFFFF - 2


def run(code: str, reads: bool, carrier: str = "name") -> Result:
    task, language = load(f"hiring:{code}"), load_language(code)
    pool = language.names.groups[GROUP[code]]
    names = {*pool.female, *pool.male}

    def model(text: str) -> Mapping[str, float]:
        line, _, rest = text.rpartition(END)
        p = 1 / (1 + math.exp(-(margin(rest) - (0.25 if reads and names & set(line.split()) else 0))))
        return dict(zip(task.labels, (p, 1 - p), strict=True))

    model.deterministic = True  # type: ignore[attr-defined]
    notes = [s.text for s in task.seeds()]
    texts = [SourceText(id=f"t{n}", text=f"{notes[n % len(notes)]} [{n:03d}]") for n in range(40)]
    attribute = language.names.attribute
    options = {"attributes": attribute, "order": 1, "cache": False, "out": None, "carrier": carrier}
    return audit(f"hiring:{code}", model=model, data=texts, **options)


def net(result: Result) -> dict[str, str]:
    return {c["groups"][0]: c["verdict"] for c in result.record["claims"] if c["family"] == "net"}


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_model_that_reads_the_name_line_is_shown(code: str) -> None:
    result = run(code, reads=True)
    assert result.record["provenance"]["seeds"]["languages"] == {code: 40}
    found = [c for c in result.record["claims"] if c["family"] == "net"]
    claim = next(c for c in found if c["groups"][0] == GROUP[code] or len(found) == 1)
    assert claim["verdict"] == "shown"
    sign = -1 if claim["groups"][0] == GROUP[code] else 1
    assert claim["estimate"] == pytest.approx(sign * 0.25, abs=0.02)
    assert claim["carriers"] == {"name": claim["texts"]}


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("carrier", ["name", "statement"])
def test_a_model_that_ignores_the_line_is_not_shown(code: str, carrier: str) -> None:
    verdicts = net(run(code, reads=False, carrier=carrier))
    assert verdicts
    assert not [v for v in verdicts.values() if v.startswith("shown")]
