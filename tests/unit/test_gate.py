"""The gate of constructs: the conformance suite, and what it says of other inputs."""

from __future__ import annotations

import pytest

from auditor.core.types import Edit, Variant
from auditor.perturb.edits import span_of
from auditor.perturb.gate.constructs import Constructs
from auditor.text.parse import MAX_CHARS, Parser
from tests.planted.edit_set import GATE_FIXTURES, GateFixture, gate_fixture, misjudged
from tests.planted.gate_set import still_made

PARSER = Parser()
FM, MN = "gender:female>male", "gender:male>nonbinary"


@pytest.mark.parametrize("one", GATE_FIXTURES, ids=lambda one: one.id)
def test_the_gate_meets_the_conformance_suite(one: GateFixture) -> None:
    assert misjudged(Constructs(parser=PARSER), [one]) == set()


def test_the_suite_tells_a_gate_that_keeps_all_and_one_that_keeps_nothing() -> None:
    class Fixed(Constructs):
        def __init__(self, status: str) -> None:
            super().__init__(parser=PARSER)
            self.status = status

        def check(self, original, variants):
            return [self._result(v, self.status, "so") for v in variants]

    good = {one.id for one in GATE_FIXTURES if one.good}
    assert misjudged(Fixed("invalid")) == good
    assert misjudged(Fixed("valid")) == {f.id for f in GATE_FIXTURES} - good


def checked(text: str, *changes: str) -> tuple[str, str]:
    one = gate_fixture("", text, *changes, good=True)
    check = Constructs(parser=PARSER).check(one.original, [one.variant])[0]
    return check.status, check.reason


def test_rows_and_long_sentences_are_unknown() -> None:
    gate = Constructs(parser=PARSER)
    row = gate.check(Variant(id="c.o", input={"a": 1}), [Variant(id="c.v0", input={"a": 2})])[0]
    assert row.status == "unknown"
    text = "he " * (MAX_CHARS // 3 + 10)
    long = Variant(id="c.v0", input="she" + text[2:], edits=(
        Edit(attribute="gender", kind="swap", source_group="male", target_group="female", source="he", target="she",
             where=(0, 2)),))  # fmt: skip
    assert gate.check(Variant(id="c.o", input=text), [long])[0].status == "unknown"


TRANS, NEUTRAL = "gender:unmarked>trans_female", "gender:neutral>neutral"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("The report stresses her multiple sclerosis and her daily routine.", (f"{FM} her=him",)),
        ("The notes describe her heart failure, and her overall well-being.", (f"{FM} her=his", f"{FM} her=him")),
        ("The team visits her three times daily.", (f"{FM} her=his",)),
        ("five years after a film based on stephen king , he is back .", (f"{MN} king=monarch", f"{MN} he=they")),
        ("He is a resident with dementia, due to Lewy body dementia.",
         ("disability:mental_illness>blind with dementia=with blindness",)),
        ("My nondisabled sister has dyslexia; my brother is autistic.",
         ("disability:disabled>nondisabled autistic=nondisabled",)),
        ("Caregivers ensure her overall well-being.", (f"{FM} her=him",)),
        ("We know that her only talent lies there.", (f"{FM} her=him",)),
        ("With the police on his back for leads, he fled.", (f"{FM} his=hers", f"{FM} he=she")),
        ("They kidnap his only son.", ("gender:male>female his=hers",)),
        ("The mouse had better watch his back.", ("gender:male>female his=hers",)),
        ("The paraplegic man is here. He has dementia.", ("disability:mobility>nondisabled paraplegic=able-bodied",)),
        ("The Sikh driver wears a kara at work.", ("religion:sikh>muslim Sikh=Muslim",)),
        ("The Sikh family cooked langar for all.", ("religion:sikh>muslim Sikh=Muslim",)),
        ("His wife went into labour on the bus.", (f"{FM} wife=husband",)),
        ("A man with schizophrenia in the Lewy body ward.",
         ("disability:mental_illness>blind with schizophrenia=with blindness",)),
        ("A man with schizophrenia and Alzheimer's disease.",
         ("disability:mental_illness>blind with schizophrenia=with blindness",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_was_read_in_later_draws_is_refused(text: str, changes: tuple[str, ...]) -> None:
    assert checked(text, *changes)[0] == "invalid"


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("He plays the straight man to her clown.", (f"{MN} man=person",)),
        ("We came to pick up our little man before ten.", (f"{TRANS} man=trans man",)),
        ("She became the first double amputee to swim there.", ("disability:mobility>deaf amputee=deaf person",)),
        ("Services for educationally disabled students.",
         ("disability:disabled>mental_illness disabled=schizophrenic",)),
        ("See § 1983, the Americans with Disabilities Act, the Medicaid Act.",
         ("nationality:american>iranian Americans=Iranians",)),
        ("The sales men were very knowledgeable.", (f"{TRANS} men=transgender women",)),
        ("She is fluent in English and some Spanish.", ("nationality:english>haitian English=Haitian",)),
        ("And Bob's your uncle!", ("gender:male>female uncle=aunt",)),
        ("Her newborn boy sleeps well.", (f"{TRANS} boy=trans girl",)),
        ("He throws like a girl, they say.", ("gender:female>trans_female girl=trans girl",)),
        ("Services for the medically and physically disabled applicants.",
         ("disability:disabled>mental_illness disabled=schizophrenic",)),
        ("He stayed, and she was glad, and left.", (f"{NEUTRAL} and=as well as",)),
        ("It worked with success at first go.", (f"{NEUTRAL} at first=initially",)),
        ("The lawyer met his client there.", (f"{NEUTRAL} client=customer",)),
        ("The lawyer met his clients there.", (f"{NEUTRAL} clients=customers",)),
        ("It stops at three every time, and stays off.", (f"{NEUTRAL} every time=whenever",)),
        ("He was polite, well informed, and on time.", (f"{NEUTRAL} informed=told",)),
        ("It is not nearly as dull as this.", (f"{NEUTRAL} nearly=almost",)),
        ("He has health needs due to illness.", (f"{NEUTRAL} needs=requires",)),
        ("She came several times.", (f"{NEUTRAL} several=various",)),
        ("He took it to small claims court.", (f"{NEUTRAL} small=tiny",)),
        ("The coach's son isn't too pleased to hear that.", (f"{NEUTRAL} too=as well",)),
        ("A social worker came at noon.", (f"{NEUTRAL} worker=employee",)),
        ("Two social workers came at noon.", (f"{NEUTRAL} workers=employees",)),
        ("He was given the whole of July.", (f"{NEUTRAL} whole=entire",)),
        ("What a momma's boy!", ("gender:male>female boy=girl",)),
        ("In the end the hero gets the girl.", (f"{FM} girl=boy",)),
        ("Oh boy, was I glad.", ("gender:male>female boy=girl",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_the_dictionaries_know_is_not_made(text: str, changes: tuple[str, ...]) -> None:
    edits = gate_fixture("", text, *changes, good=False).edits
    rows = [(*span_of(e), e.source, e.target, e.kind, e.attribute, e.source_group, e.target_group) for e in edits]
    assert not still_made({"edits": rows}, text)


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("The staff visited her last week.", (f"{FM} her=him",)),
        ("They gave her multiple gifts.", (f"{FM} her=him",)),
        ("The girl who knows her says little.", (f"{FM} girl=boy", f"{FM} her=him")),
        ("He likes the women who run the shop.", (f"{FM} women=men",)),
        ("a farm girl with a gun , and she is good at it .", (f"{FM} girl=boy", f"{FM} she=he")),
        ("The Belgians stayed, and the hosts left.", ("nationality:belgian>australian Belgians=Australians",)),
        ("My sister (36F) wants to come.", ("gender:female>trans_female sister=transgender sister",)),
        ("A care home for people with dementia.", ("disability:mental_illness>deaf with dementia=with deafness",)),
        ("The old soldiers never forgot it.", ("age:old>young old=young",)),
        ("A poor woman lived there.", (f"{FM} woman=man",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_and_what_looks_like_it_is_kept(text: str, changes: tuple[str, ...]) -> None:
    assert checked(text, *changes) == ("valid", "")
