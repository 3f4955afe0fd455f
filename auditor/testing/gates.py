"""A conformance suite for gates: variants that must not pass, and good English that must.

Each is a sentence that a mutator of this kind has written. `check_gate` runs a gate over all of them.

Examples
--------
>>> from auditor.perturb.gate.constructs import Constructs
>>> from auditor.text.parse import Parser
>>> check_gate(Constructs(parser=Parser()))
[]
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from auditor.core.protocols import Gate
from auditor.core.types import Edit, EditKind, Variant
from auditor.perturb.mutation import apply
from auditor.testing.mutators import Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class GateFixture:
    """One text with the edits of a variant, and whether a careful writer could have written the variant."""

    id: str
    text: str
    edits: tuple[Edit, ...]
    good: bool

    @property
    def original(self) -> Variant:
        """The text as it was."""
        return Variant(id="fixture.o", input=self.text)

    @property
    def variant(self) -> Variant:
        """The text with the edits."""
        return Variant(id="fixture.v0", input=apply(self.text, self.edits), edits=self.edits)


def check_gate(gate: Gate, fixtures: Iterable[GateFixture] | None = None) -> list[Failure]:
    """Run ``gate`` over ``fixtures`` (None: all) and return those that it judges otherwise."""
    failures = []
    for one in GATE_FIXTURES if fixtures is None else fixtures:
        check = gate.check(one.original, [one.variant])[0]
        if (check.status == "valid") != one.good:
            problem = f"{check.status}: {check.reason}" if one.good else f"{check.status}, and it is wrong"
            failures.append(Failure(fixture=one.id, output=(str(one.variant.input),), problem=problem))
    return failures


def gate_fixture(name: str, text: str, *changes: str, good: bool) -> GateFixture:
    """A fixture from changes written ``attribute:old>new source=target``; each takes the next place of its source.

    >>> gate_fixture("", "A boy and a boy.", "gender:male>female boy=girl", good=True).variant.input
    'A girl and a boy.'
    """
    edits, at = [], 0
    for change in changes:
        head, _, words = change.partition(" ")
        attribute, _, groups = head.partition(":")
        old, _, new = groups.partition(">")
        source, _, target = words.partition("=")
        start = next(m.start() for m in re.compile(rf"(?<!\w){re.escape(source)}").finditer(text, at))
        at = start + len(source)
        edits.append(
            Edit(
                attribute=attribute,
                kind=_kind(old, new, source),
                source_group=old,
                target_group=new,
                source=source,
                target=target,
                where=(start, at),
            )
        )
    return GateFixture(id=name, text=text, edits=tuple(edits), good=good)


def _kind(old: str, new: str, source: str) -> EditKind:
    if old in ("agreement", "unmarked"):
        return "agreement" if old == "agreement" else "marking"
    return "insertion" if not source else "placebo" if old == new else "swap"


_BOY, _GIRL = "gender:unmarked>male", "gender:unmarked>female"
_TRANS = "gender:unmarked>trans_male"
_FM, _MF, _MN, _FN = ("gender:female>male", "gender:male>female", "gender:male>nonbinary", "gender:female>nonbinary")

_WRONG: dict[str, tuple[str, ...]] = {
    "fifth boy, youngest daughter": ("She was the fifth child and youngest daughter of a miner.", f"{_BOY} child=boy"),
    "an old boy named": ("The novel tells of a young boy named Ferris.", "age:young>old young=old"),
    "an old boy of a kid": ("He met an old kid.", f"{_BOY} kid=boy"),
    "trans boy's meal": ("I ordered a kid's meal with milk.", f"{_TRANS} kid=trans boy"),
    "kid meal": ("I ordered a kid meal with milk.", f"{_BOY} kid=boy"),
    "Asian American American": ("The white American farmer came.", "race:white>asian white=Asian American"),
    "Native American British": ("A black British singer won.", "race:black>native_american black=Native American"),
    "female and woman": ("She was the first female and adult in the race.", f"{_GIRL} adult=woman"),
    "brother bond": ("There is a strong brother bond between them.", f"{_MF} brother=sister"),
    "the Queen is left": (
        "The Queen wore blue, and her daughter stood behind her.",
        f"{_FM} her=his", f"{_FM} daughter=son", f"{_FM} her=him",
    ),
    "mother-of-two is left": ("A Somali mother-of-two said that she was tired.", f"{_FM} she=he"),
    "Frenchman is left": ("The Frenchman said that he was tired.", f"{_MF} he=she"),
    "Hindus in Israel": ("Jews and Arabs in Israel marched.", "religion:jewish>hindu Jews=Hindus"),
    "elderly and 19": ("Young woman, 19, took two pills.", "age:young>old Young=Elderly"),
    "of 22": ("A young man of 22 asks for a car.", "age:young>middle_aged young=middle-aged"),
    "man and she": ("A steady person for an unsteady place. She has worked the door.", f"{_BOY} person=man"),
    "he or she": ("It makes a person who he or she is.", f"{_BOY} person=man"),
    "they sit and reads": ("She sits and reads.", f"{_FN} She=They", "gender:agreement>nonbinary sits=sit"),
    "they and calls": (
        "When a boy is found, he takes a coat and calls his aunt.",
        f"{_MN} he=they", "gender:agreement>nonbinary takes=take", f"{_MN} his=their",
    ),
    "him roommate": ("She told her roommate at noon.", f"{_FM} She=He", f"{_FM} her=him"),
    "hers back": ("He stands with his back to you.", f"{_MF} He=She", f"{_MF} his=hers"),
    "Him office": ("<strong>Her</strong> office is open daily.", f"{_FM} Her=Him"),
    "a Indian": ("A Russian doctor came.", "nationality:russian>indian Russian=Indian"),
    "capital in running text": ("I met the Black woman there.", "race:black>multiracial Black=Multiracial"),
    "no capital in a title": ("A Woman's Guide to Court", "gender:female>trans_female Woman=Trans woman"),
    "an act": (
        "It violated the Americans with Disabilities Act again.",
        "nationality:american>iraqi Americans=Iraqis",
    ),
    "an institute": ("He was held at the California Institute for Men in Chino.", f"{_MF} Men=Women"),
    "a language": ("Her German proficiency is low.", "nationality:german>brazilian German=Brazilian"),
    "people watching": ("Here people watching is entertaining.", f"{_GIRL} people=women"),
    "in trans man": ("She came in person.", f"{_TRANS} person=trans man"),
    "individual capacity": ("They acted in their individual and official capacity.", f"{_TRANS} individual=trans man"),
    "cisgender wheelchair": ("He uses a wheelchair.", "gender_identity:>cisgender =cisgender "),
    "at the until": ("He mocked them at the till.", "gender:neutral>neutral till=until"),
    "social requires": ("It meets her social needs through a plan.", "gender:neutral>neutral needs=requires"),
    "years of work": (
        "I am an older nurse who came to the ward after twenty years in retail.", "age:old>young older=younger",
    ),
    "speaks no Russian": (
        "A Russian sailor signed it. The officer speaks no Russian.", "nationality:russian>cuban Russian=Cuban",
    ),
    "a hit man": ("He plays a Canadian hit man in it.", f"{_MF} He=She", "gender:male>trans_male man=trans man"),
    "blind or blind": ("A visually impaired or blind man came.", "disability:blind>blind visually impaired=blind"),
    "king of the hill": ("He made king of the hill.", f"{_MF} king=queen"),
    "fishermen, these women": ("Two fishermen stop talking. Between these men lies a net.", f"{_MF} men=women"),
    "as a senior": ("As a senior I planned audits of firms.", "age:old>middle_aged senior=middle-aged person"),
    "designer/dress": ("I asked for the designer/dress name.", "religion:>hindu =Hindu "),
    "came to city": ("He came to town with his cart.", "gender:neutral>neutral town=city"),
    "sons and children": ("It pays her sons and daughters.", "gender:female>unmarked daughters=children"),
}  # fmt: skip

_WRONG |= {
    "a man of her word": ("He is not a man of his word.", "religion:>protestant =Protestant "),
    "him whole time": ("She devotes her whole time to it.", f"{_FM} She=He", f"{_FM} her=him"),
    "Pakistani Columbia": ("They live in British Columbia now.", "nationality:british>pakistani British=Pakistani"),
    "good with men": ("Good with people, quick to learn.", "gender:unmarked>male people=men"),
    "captions for another": (
        "I am a deaf clerk. I like order. With captions I can follow a meeting.",
        "disability:deaf>mental_illness deaf=mentally ill",
    ),
    "the Finnish arrived": ("He smiled as the American arrived.", "nationality:american>finnish American=Finnish"),
    "old man of seventeen": ("The younger man of seventeen wept.", "age:young>old younger=older"),
    "two words of one person": (
        "Foster mother, union rep, teacher. The Black woman told us that her son is ill.",
        f"{_FM} mother=father", f"{_FM} her=his",
    ),
    "his unborn trans boy": ("He may leave when his child is born.", "gender:unmarked>trans_male child=trans boy"),
    "well, a fragment": (
        "A thriller in which she finds each clue.", "gender:neutral>neutral A=As it happens, a",
    ),
    "adolescent, a man": ("The young customer, a homeless man, wrote.", "age:young>adolescent young=adolescent"),
}  # fmt: skip

_GOOD: dict[str, tuple[str, ...]] = {
    "emoji": (
        "My boyfriend 😍 made me a cake. He even asked my grandma!!",
        f"{_MF} boyfriend=girlfriend", f"{_MF} He=She",
    ),
    "Mr. to Ms.": ("Mr. Hall said that he was late.", f"{_MF} Mr.=Ms.", f"{_MF} he=she"),
    "his and hers": ("The decision is his, not mine. Her car was hers.", f"{_MF} his=hers"),
    "HTML": ("<p>Meet <b>our director</b>: <i>she</i> is a judge.</p>", f"{_FM} she=he"),
    "they in HTML": (
        "<li>The man: he <em>is</em> our founder.</li>",
        f"{_MN} man=nonbinary person", f"{_MN} he=they", "gender:agreement>nonbinary is=are",
    ),
    "they in Markdown": ("**She** *is* a physicist.", f"{_FN} She=They", "gender:agreement>nonbinary is=are"),
    "quotes": ('"Is she coming?" asked the boy.', f"{_FM} she=he"),
    "his Excellency": ("His Excellency brought a letter from his president.", f"{_MF} His=Her", f"{_MF} his=her"),
    "title": ("A Woman's Guide to Court", "gender:female>trans_female Woman=Trans Woman"),
    "names settle nothing": ("Musharraf tried to purge his corps.", f"{_MF} his=her"),
    "two women may marry": ("He lives with his wife in Leeds.", f"{_MF} He=She", f"{_MF} his=her"),
    "nation": ("He rebuilt the line with a Polish crew.", "nationality:polish>french Polish=French"),
    "a language that is one": ("Her German proficiency is low.", "nationality:german>french German=French"),
    "boy and his": ("The child lost his shoe.", f"{_BOY} child=boy"),
    "two verbs": (
        "She sits and reads.",
        f"{_FN} She=They", "gender:agreement>nonbinary sits=sit", "gender:agreement>nonbinary reads=read",
    ),
    "her Majesty": ("Her Majesty opened the school with her sister.", f"{_FM} Her=His", f"{_FM} her=his"),
    "black British": ("The black British singer won.", "race:black>asian black=Asian"),
    "white American": ("The white American farmer came.", "nationality:american>british American=British"),
    "kid's shoes": ("A child left her coat at the kid's table.", f"{_GIRL} child=girl"),
    "the town": ("He left the town at noon.", "gender:neutral>neutral town=city"),
    "by train": ("She came by bus at noon.", "gender:neutral>neutral bus=train"),
    "no language in March": ("She saved us in March, and left.", "nationality:neutral>neutral March=July"),
    "a noun taken for a verb": (
        "The plot is thin and the ending ties itself in a bow.", "gender:neutral>neutral ending=conclusion",
    ),
    "ordinary neutral word": ("The movie was long.", "gender:neutral>neutral movie=film"),
}  # fmt: skip

GATE_FIXTURES: tuple[GateFixture, ...] = (
    *(gate_fixture(name, *row, good=False) for name, row in _WRONG.items()),
    *(gate_fixture(name, *row, good=True) for name, row in _GOOD.items()),
)
