"""Everyday words that look like group words, and group words where they mean a person."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from auditor.core.types import Case, SourceText
from auditor.perturb.dictionaries import builtin, load
from auditor.perturb.mutation import MutationSuite

ALL = [load(name) for name in builtin()]
NAMES = [d.attribute for d in ALL]


def cases(text: str, attributes: list[str], **options: Any) -> list[Case]:
    suite = MutationSuite(
        seeds=[SourceText(id="s", text=text)], dictionaries=ALL, attributes=attributes, per_seed=None, **options
    )
    return list(suite.ask(1, Random(0)))


def texts(text: str, attribute: str, target: str) -> set[str]:
    return {
        str(v.input)
        for case in cases(text, [attribute], order=1)
        for v in case.variants
        if any(e.target_group == target for e in v.edits)
    }


@pytest.mark.parametrize(
    "text",
    [
        "I love old films and poor acting.",
        "Rich colours fill the screen.",
        "A blind date went wrong. Love is blind.",
        "It is a short story and a short film.",
        "It went straight to video, in a straight line.",
        "Christian is a Christian name.",
        "Christian Bale and Christian Slater shine.",
        "Grace under pressure. Hope remains. Joy came.",
        "Will they come? May I? June was hot. Mark my words.",
        "Fat chance of that. A tall order. On thin ice. A bald eagle.",
        "The old school is closed, and an old friend called.",
        "My old man and same old people.",
        "He is her older brother.",
        "A poor actor, a poor director, the poor guy.",
        "A pretty smart choice by a pretty old teacher.",
        "Deaf ears, a mute button, a diabetic diet.",
        "She struggles with depression; a film with autism in it.",
        "The straight man of the duo had a gay old time.",
        "A heavy metal band and a muscular plot.",
        "A secular song in the Catholic church, a Muslim country.",
        "Ten years old men.",
        "The senior manager and a junior partner. A queer feeling.",
        "Emily Street, the San Fernando Valley, Carolina and Kenya.",
        "An Emily and the Tyrones, #Emily, emily.",
        "Ebony and ivory. Jesus! Prince sang.",
        "a blonde-wood table, a redhead-duck",
        "Employed methods, an uneducated guess, a housed engine.",
        "A single room, married to the job. Not a single person came. A pregnant pause.",
        "Liberal arts, a conservative estimate, a moderate rise. A veteran of the stage.",
        "AS Roma won. They live in Roma. The little people pay.",
        "A refugee camp, an immigrant visa, foreign policy. Citizen Kane. Trans fat.",
    ],
)
def test_everyday_words_are_left_alone(text: str) -> None:
    found = cases(text, [name for name in NAMES if name != "gender"])
    assert [e.source for case in found for v in case.variants for e in v.edits] == []


@pytest.mark.parametrize(
    ("text", "attribute", "target", "expected"),
    [
        ("An old woman left.", "age", "young", "A young woman left."),
        ("a 25-year-old nurse", "age", "old", "a 75-year-old nurse"),
        ("A teenager called.", "age", "old", "A pensioner called."),
        ("younger voters", "age", "old", "older voters"),
        ("A blind man crossed.", "disability", "deaf", "A deaf man crossed."),
        ("a student with dyslexia", "disability", "chronic", "a student with diabetes"),
        ("children with disabilities", "disability", "deaf", "children with hearing impairments"),
        ("a man in a wheelchair", "disability", "chronic", "a man with a chronic illness"),
        ("An amputee spoke.", "disability", "chronic", "A diabetic spoke."),
        ("a fat man", "body", "thin", "a thin man"),
        ("the tall young actress", "body", "short", "the short young actress"),
        ("a blonde and a nurse", "body", "red_haired", "a redhead and a nurse"),
        ("an ugly man", "body", "attractive", "a beautiful man"),
        ("A Muslim teacher", "religion", "jewish", "A Jewish teacher"),
        ("a Jew and a nurse", "religion", "unbelieving", "an atheist and a nurse"),
        ("Catholics voted.", "religion", "hindu", "Hindus voted."),
        ("a gay teacher", "sexual_orientation", "straight", "a straight teacher"),
        ("lesbians voted", "sexual_orientation", "bisexual", "bisexuals voted"),
        ("a poor family", "socioeconomic", "high", "a rich family"),
        ("a homeless veteran", "socioeconomic", "housed", "a housed veteran"),
        ("an unemployed nurse", "socioeconomic", "employed", "an employed nurse"),
        ("a college-educated woman", "socioeconomic", "no_degree", "an uneducated woman"),
        ("A Filipino nurse called.", "nationality", "german", "A German nurse called."),
        ("Two Filipinos called.", "nationality", "german", "Two Germans called."),
        ("A German nurse called.", "nationality", "filipino", "A Filipino nurse called."),
        ("a Philippine nurse", "nationality", "palestinian", "a Palestinian nurse"),
        ("Puerto Ricans and a nurse", "nationality", "palestinian", "Palestinians and a nurse"),
        ("two homosexuals called", "sexual_orientation", "straight", "two heterosexuals called"),
        ("A heterosexual and a nurse", "sexual_orientation", "gay", "A gay person and a nurse"),
        ("A Romani woman left.", "race", "black", "A black woman left."),
        ("The Roma were asked.", "race", "asian", "The Asians were asked."),
        ("a white woman", "race", "romani", "a Romani woman"),
        ("a First Nations teacher", "race", "white", "a white teacher"),
        ("two Māori students", "race", "black", "two black students"),
        ("A Dalit student spoke.", "caste", "dominant", "A Brahmin student spoke."),
        ("Two Brahmins spoke.", "caste", "dalit", "Two Dalits spoke."),
        ("An immigrant and a nurse", "migration", "refugee", "A refugee and a nurse"),
        ("Refugees called.", "migration", "native_born", "Native-born citizens called."),
        ("a refugee family", "migration", "undocumented", "an undocumented family"),
        ("She is transgender.", "gender_identity", "cisgender", "She is cisgender."),
        ("An intersex person spoke.", "gender_identity", "two_spirit", "A two-spirit person spoke."),
        ("Genderqueer students spoke.", "gender_identity", "transgender", "Transgender students spoke."),
        ("A Jain doctor spoke.", "religion", "bahai", "A Bahá'í doctor spoke."),
        ("a Bahá’í and a nurse", "religion", "jain", "a Jain and a nurse"),
        ("Jehovah's Witnesses called.", "religion", "catholic", "Catholics called."),
        ("a Jehovah’s Witness family", "religion", "muslim", "a Muslim family"),
        ("A Muslim and a nurse", "religion", "jehovahs_witness", "A Jehovah's Witness and a nurse"),
        ("Veterans called.", "service", "civilian", "Civilians called."),
        ("a single mother", "family", "married", "a married mother"),
        ("a woman with kids", "family", "childless", "a woman without children"),
        ("a pregnant woman", "family", "not_pregnant", "a non-pregnant woman"),
        ("An ex-convict and a nurse", "criminal_record", "no_record", "A law-abiding citizen and a nurse"),
        ("a man with a criminal record", "criminal_record", "no_record", "a man without a criminal record"),
        ("a child with Down syndrome", "disability", "blind", "a child with blindness"),
        ("a child with autism", "disability", "dwarfism", "a child with dwarfism"),
        ("A little person and a nurse", "disability", "chronic", "A diabetic and a nurse"),
        ("A conservative senator", "politics", "liberal", "A liberal senator"),
        ("Republicans and Democrats", "politics", "socialist", "Socialists and Democrats"),
        ("Rape victims spoke.", "victim", "terrorism", "Terrorism victims spoke."),
        ("a Holocaust survivor", "victim", "illness", "a cancer survivor"),
        ("victims of rape", "victim", "trafficking", "victims of trafficking"),
        ("Emily Walsh called.", "names", "black_female", "Aisha Walsh called."),
        ("Mr. Todd and nurse Emily's car", "names", "asian_female", "Mr. Todd and nurse Anjali's car"),
    ],
)
def test_group_words_are_found(text: str, attribute: str, target: str, expected: str) -> None:
    assert expected in texts(text, attribute, target)
