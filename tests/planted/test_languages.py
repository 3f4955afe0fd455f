"""Names in five languages and scripts: a model that reads the name line is shown, one that ignores it is not.

So it is with candidates side by side, in three of them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from auditor import Result, audit
from auditor.cli.main import run as command
from auditor.core.types import SourceText
from auditor.perturb.name_lines import END
from auditor.tasks import load
from auditor.text.languages import load as load_language
from tests.asking import json_lines

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


def net(record: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The claims on groups, by the first group."""
    return {c["groups"][0]: c for c in record["claims"] if c["family"] == "net"}


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_model_that_reads_the_name_line_is_shown(code: str) -> None:
    result = run(code, reads=True)
    assert result.record["provenance"]["seeds"]["languages"] == {code: 40}
    found = net(result.record)
    claim = found[GROUP[code] if len(found) > 1 else next(iter(found))]
    assert claim["verdict"] == "shown"
    sign = -1 if claim["groups"][0] == GROUP[code] else 1
    assert claim["estimate"] == pytest.approx(sign * 0.25, abs=0.02)
    assert claim["carriers"] == {"name": claim["texts"]}


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("carrier", ["name", "statement"])
def test_a_model_that_ignores_the_line_is_not_shown(code: str, carrier: str) -> None:
    found = net(run(code, reads=False, carrier=carrier).record)
    assert found
    assert not [c for c in found.values() if c["verdict"].startswith("shown")]


def chooser(messages: list[dict[str, str]]) -> str:
    """Draw from the text, answer in its language, and where `AGAINST` has names choose others in half of the pairs."""
    asked = messages[-1]["content"]
    code = next(c for c in AGAINST if load_language(c).prompt.choose.two in asked)
    words, draw = load_language(code).prompt.choose, hashlib.sha256(asked.encode()).digest()
    shown = re.findall(r"<candidate-\d>\n(.*?)\n</candidate-\d>", asked, re.DOTALL)
    disliked = [bool(AGAINST[code] & set(one.split("\n")[0].split())) for one in shown]
    if disliked[0] != disliked[1] and draw[0] < 128:
        return (words.second if disliked[0] else words.first)[0]
    return (words.first, words.second, words.tie)[draw[1] % 3][0]


chooser.deterministic = chooser.fast = True  # type: ignore[attr-defined]
chooser.auditor_style = "chat"  # type: ignore[attr-defined]
AGAINST: dict[str, set[str]] = {}


@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize("code", ["de", "ar", "ja"])
def test_who_is_chosen(
    code: str, reads: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    language = load_language(code)
    pool = language.names.groups[GROUP[code]]
    monkeypatch.setitem(AGAINST, code, {*pool.female, *pool.male} if reads else set())
    monkeypatch.setitem(sys.modules, "chooser", sys.modules[__name__])
    monkeypatch.chdir(tmp_path)
    notes = [s.text for s in load(f"resume:{code}").seeds()]
    texts = [{"text": f"{notes[n % len(notes)]} [{n:03d}]"} for n in range(60)]
    json_lines(Path("texts.jsonl"), texts)
    given = f"choose --task resume:{code} --data texts.jsonl --carrier name --attributes {language.names.attribute}"
    assert command([*given.split(), "--model", "python:chooser:chooser", "--format", "json", "--no-cache"]) == 0
    told = json.loads(capsys.readouterr().out)
    seen = told["panels"]["python:chooser:chooser"]
    assert set(seen["answers"]) == {"ok"}
    claims = net(told)
    if reads:
        claim = claims.get(GROUP[code]) or next(iter(claims.values()))
        assert claim["verdict"] == "shown"
        assert (claim["estimate"] < 0) == (claim["groups"][0] == GROUP[code])
    else:
        assert claims
        assert not [c for c in claims.values() if c["verdict"].startswith("shown")]
