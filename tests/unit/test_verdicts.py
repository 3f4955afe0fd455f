"""The reason beside a verdict says what kept a difference from being shown."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from auditor import audit
from auditor.core.record.measured import Claim
from auditor.measure import claims as verdicts
from auditor.measure.claims import Question
from auditor.measure.findings import ATOMIC
from auditor.measure.linear import Design, Estimated, Fit, Rows
from auditor.report import claimed

TEXTS = 40


def difference(value: float, group: str) -> verdicts.Tested:
    """A difference of ``value`` with a standard error of 1, told by twenty words."""
    one = Estimated(value=value, ses=np.array([1.0]), likely=np.array([1.0]), df=1e6)
    main = Fit(these=one, group=one, texts=TEXTS, words=20.0, tau=0.0)
    claim = Claim(
        family="net", attribute="gender", label="yes", groups=(group, "male"), model="m", format="bare", scale="log_odds",
        unit="log odds",
    )  # fmt: skip
    design = Design(
        focal=np.ones(TEXTS),
        covariates=np.zeros((TEXTS, 0)),
        text=np.arange(TEXTS),
        words=csr_array((np.ones(TEXTS), (np.arange(TEXTS), np.arange(TEXTS) % 20))),
    )
    rows = Rows(y=np.full(TEXTS, value), design=design)
    return verdicts.Tested(verdicts.filled(claim, main), weight=1.0, changed=rows.changed, share=main)


@pytest.mark.parametrize(
    ("value", "others", "why"),
    [
        (1.0, 9, "too little data for a difference this small: 40 texts"),
        (2.5, 9, "its interval alone leaves out 0, but it is one of 10 comparisons: p = 0.12"),
        (2.5, 0, ""),
    ],
)
def test_an_interval_without_zero_is_told_apart_from_too_little_data(value: float, others: int, why: str) -> None:
    family = [difference(value, "female"), *(difference(0.1, f"group{n}") for n in range(others))]
    claim = verdicts.decide(family, Question())[0]
    assert claim.verdict == ("not_determined" if why else "shown")
    assert claim.why.startswith(why)
    assert bool(why) == bool(claim.why)


def test_an_error_of_adding_up_leaves_out_no_zero() -> None:
    one = Estimated(value=1e-16, ses=np.array([1e-18]), likely=np.array([1.0]), df=1e6)
    nothing = difference(0.0, "female")
    assert nothing.share is not None
    main = replace(nothing.share, these=one, group=one)
    claim = verdicts.decide([replace(nothing, share=main, claim=verdicts.filled(nothing.claim, main))], Question())[0]
    assert claim.low is not None
    assert claim.low > 0
    assert "leaves out 0" not in claim.why


def test_a_finding_of_an_attribute_says_which_difference_its_verdict_rests_on() -> None:
    def screened(text: str) -> str:
        return "invite" if {"she", "her", "woman", "girl"} & set(re.findall(r"\w+", text.lower())) else "reject"

    result = audit("hiring", model=screened, attributes="gender", limit=60, cache=False)
    (finding,) = [f for f in result.findings if f.code == ATOMIC]
    assert finding.verdict == "shown"
    note = claimed.notes(result.run, finding)[0]
    assert note.startswith("what is shown is which way answers change: ")
    assert " were invited in " in note
    same = audit("hiring", model=lambda text: "reject", attributes="gender", limit=60, cache=False)
    (finding,) = [f for f in same.findings if f.code == ATOMIC]
    assert not any("which way" in note for note in claimed.notes(same.run, finding))
