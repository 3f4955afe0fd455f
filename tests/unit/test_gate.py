"""The gate of constructs: what must not pass, and good English that must."""

from __future__ import annotations

import re

import pytest

from auditor.core.types import Edit, Variant
from auditor.perturb.gate.constructs import Constructs, edits_of
from auditor.text.parse import MAX_CHARS, Parser

PARSER = Parser()


def checked(text: str, *changes: str) -> tuple[str, str]:
    """Check ``text`` after changes written ``attribute:group source=target``; each takes the next place of its source."""
    edits, at = [], 0
    for change in changes:
        head, _, words = change.partition(" ")
        attribute, _, groups = head.partition(":")
        old, _, group = groups.partition(">")
        source, _, target = words.partition("=")
        start = next(m.start() for m in re.compile(rf"(?<!\w){re.escape(source)}").finditer(text, at))
        at = start + len(source)
        kind = (
            "marking"
            if old == "unmarked"
            else "insertion"
            if not source
            else "placebo"
            if old == group
            else "swap"
        )
        kind = "agreement" if old == "agreement" else kind
        edits.append(
            Edit(attribute=attribute, kind=kind, source_group=old, target_group=group, source=source, target=target,
                 where=(start, at))
        )  # fmt: skip
    made, last = [], 0
    for edit in edits:
        made += [text[last : edit.where[0]], edit.target]
        last = edit.where[1]
    made.append(text[last:])
    variant = Variant(id="c.v0", input="".join(made), edits=tuple(edits))
    check = Constructs(parser=PARSER).check(Variant(id="c.o", input=text), [variant])[0]
    return check.status, check.reason


BOY, GIRL = "gender:unmarked>male", "gender:unmarked>female"
TRANS = "gender:unmarked>trans_male"
FM, MF, MN, FN = (
    "gender:female>male",
    "gender:male>female",
    "gender:male>nonbinary",
    "gender:female>nonbinary",
)

WRONG = {
    "fifth boy, youngest daughter": ("She was the fifth child and youngest daughter of a miner.", f"{BOY} child=boy"),
    "an old boy named": ("The novel tells of a young boy named Ferris.", "age:young>old young=old"),
    "an old boy of a kid": ("He met an old kid.", f"{BOY} kid=boy"),
    "trans boy's meal": ("I ordered a kid's meal with milk.", f"{TRANS} kid=trans boy"),
    "kid meal": ("I ordered a kid meal with milk.", f"{BOY} kid=boy"),
    "Asian American American": ("The white American farmer came.", "race:white>asian white=Asian American"),
    "Native American British": ("A black British singer won.", "race:black>native_american black=Native American"),
    "female and woman": ("She was the first female and adult in the race.", f"{GIRL} adult=woman"),
    "brother bond": ("There is a strong brother bond between them.", f"{MF} brother=sister"),
    "the Queen is left": (
        "The Queen wore blue, and her daughter stood behind her.",
        f"{FM} her=his", f"{FM} daughter=son", f"{FM} her=him",
    ),
    "mother-of-two is left": ("A Somali mother-of-two said that she was tired.", f"{FM} she=he"),
    "Frenchman is left": ("The Frenchman said that he was tired.", f"{MF} he=she"),
    "Hindus in Israel": ("Jews and Arabs in Israel marched.", "religion:jewish>hindu Jews=Hindus"),
    "elderly and 19": ("Young woman, 19, took two pills.", "age:young>old Young=Elderly"),
    "of 22": ("A young man of 22 asks for a car.", "age:young>middle_aged young=middle-aged"),
    "man and she": ("A steady person for an unsteady place. She has worked the door.", f"{BOY} person=man"),
    "he or she": ("It makes a person who he or she is.", f"{BOY} person=man"),
    "they sit and reads": ("She sits and reads.", f"{FN} She=They", "gender:agreement>nonbinary sits=sit"),
    "they and calls": (
        "When a boy is found, he takes a coat and calls his aunt.",
        f"{MN} he=they", "gender:agreement>nonbinary takes=take", f"{MN} his=their",
    ),
    "him roommate": ("She told her roommate at noon.", f"{FM} She=He", f"{FM} her=him"),
    "hers back": ("He stands with his back to you.", f"{MF} He=She", f"{MF} his=hers"),
    "Him office": ("<strong>Her</strong> office is open daily.", f"{FM} Her=Him"),
    "a Indian": ("A Russian doctor came.", "nationality:russian>indian Russian=Indian"),
    "capital in running text": ("I met the Black woman there.", "race:black>multiracial Black=Multiracial"),
    "no capital in a title": ("A Woman's Guide to Court", "gender:female>trans_female Woman=Trans woman"),
    "an act": (
        "It violated the Americans with Disabilities Act again.",
        "nationality:american>iraqi Americans=Iraqis",
    ),
    "an institute": ("He was held at the California Institute for Men in Chino.", f"{MF} Men=Women"),
    "a language": ("Her German proficiency is low.", "nationality:german>brazilian German=Brazilian"),
    "people watching": ("Here people watching is entertaining.", f"{GIRL} people=women"),
    "in trans man": ("She came in person.", f"{TRANS} person=trans man"),
    "individual capacity": ("They were named in their individual and official capacity.", f"{TRANS} individual=trans man"),
    "cisgender wheelchair": ("He uses a wheelchair.", "gender_identity:>cisgender =cisgender "),
    "at the until": ("He mocked them at the till.", "gender:neutral>neutral till=until"),
    "social requires": ("It meets her social needs through a plan.", "gender:neutral>neutral needs=requires"),
    "sons and children": ("It pays her sons and daughters.", "gender:female>unmarked daughters=children"),
}  # fmt: skip

GOOD = {
    "emoji": (
        "My boyfriend 😍 made me a cake. He even asked my grandma!!",
        f"{MF} boyfriend=girlfriend", f"{MF} He=She",
    ),
    "Mr. to Ms.": ("Mr. Hall said that he was late.", f"{MF} Mr.=Ms.", f"{MF} he=she"),
    "his and hers": ("The decision is his, not mine. Her car was hers.", f"{MF} his=hers"),
    "HTML": ("<p>Meet <b>our director</b>: <i>she</i> is a judge.</p>", f"{FM} she=he"),
    "they in HTML": (
        "<li>The man: he <em>is</em> our founder.</li>",
        f"{MN} man=nonbinary person", f"{MN} he=they", "gender:agreement>nonbinary is=are",
    ),
    "they in Markdown": ("**She** *is* a physicist.", f"{FN} She=They", "gender:agreement>nonbinary is=are"),
    "quotes": ('"Is she coming?" asked the boy.', f"{FM} she=he"),
    "his Excellency": ("His Excellency brought a letter from his president.", f"{MF} His=Her", f"{MF} his=her"),
    "title": ("A Woman's Guide to Court", "gender:female>trans_female Woman=Trans Woman"),
    "names settle nothing": ("Musharraf tried to purge his corps.", f"{MF} his=her"),
    "two women may marry": ("He lives with his wife in Leeds.", f"{MF} He=She", f"{MF} his=her"),
    "nation": ("He rebuilt the line with a Polish crew.", "nationality:polish>french Polish=French"),
    "a language that is one": ("Her German proficiency is low.", "nationality:german>french German=French"),
    "boy and his": ("The child lost his shoe.", f"{BOY} child=boy"),
    "two verbs": (
        "She sits and reads.",
        f"{FN} She=They", "gender:agreement>nonbinary sits=sit", "gender:agreement>nonbinary reads=read",
    ),
    "ordinary neutral word": ("The movie was long.", "gender:neutral>neutral movie=film"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_does_not_pass(name: str) -> None:
    status, reason = checked(*WRONG[name])
    assert status == "invalid"
    assert reason


@pytest.mark.parametrize("name", GOOD)
def test_what_is_good_passes(name: str) -> None:
    assert checked(*GOOD[name]) == ("valid", "")


def test_errors_of_the_original_are_not_the_variants() -> None:
    assert checked("He are late, an woman says.", f"{FM} woman=man") == ("valid", "")
    assert checked("He is late, a woman says.", f"{MN} He=They")[0] == "invalid"


def test_without_edits_words_are_compared() -> None:
    variant = Variant(id="c.v0", input="She sold a his car.")
    found = edits_of("He sold a red car.", variant)
    assert [(e.source, e.target, e.where) for e in found] == [("He", "She", (0, 2)), ("red", "his", (10, 13))]


def test_rows_and_long_sentences_are_unknown() -> None:
    gate = Constructs(parser=PARSER)
    row = gate.check(Variant(id="c.o", input={"a": 1}), [Variant(id="c.v0", input={"a": 2})])[0]
    assert row.status == "unknown"
    text = "he " * (MAX_CHARS // 3 + 10)
    long = Variant(id="c.v0", input="she" + text[2:], edits=(
        Edit(attribute="gender", kind="swap", source_group="male", target_group="female", source="he", target="she",
             where=(0, 2)),))  # fmt: skip
    assert gate.check(Variant(id="c.o", input=text), [long])[0].status == "unknown"
