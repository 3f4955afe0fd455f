"""A conformance suite for what a run asks: sentences, the variants to be kept, and words that none may have.

`check_mutator` looks at what is written and `check_gate` at what is let through; a run needs both. `check_kept` is
given the texts that are left of each sentence, by id, such as the valid variants of ``audit generate --data FILE``.

Examples
--------
>>> check_kept({one.id: one.kept for one in SENTENCES})
[]
>>> one = SENTENCES[0]
>>> wrong = {one.id: ("She was the fifth boy and youngest daughter of a miner.",)}
>>> [failure.problem for failure in check_kept(wrong, [one])]
["'He was the fifth child and youngest son of a miner.' is missing", "contains 'fifth boy'"]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from auditor.testing.mutators import Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """One text, variants of it that a run must keep, and phrases (in lower case, from a word on) that none may hold.

    ``subject``: whether only the words of the person who is judged are changed.
    """

    id: str
    text: str
    kept: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    subject: bool = False


def check_kept(kept: Mapping[str, Sequence[str]], sentences: Iterable[Sentence] | None = None) -> list[Failure]:
    """Say of which ``sentences`` (None: all) the texts in ``kept`` lack a good variant or hold a bad one."""
    failures = []
    for one in SENTENCES if sentences is None else sentences:
        texts = tuple(kept.get(one.id, ()))
        low = [text.lower() for text in texts]
        problems = [f"{text!r} is missing" for text in one.kept if text not in texts]
        problems += [
            f"contains {phrase!r}"
            for phrase in one.never
            if any(re.search(rf"(?<!\w){re.escape(phrase)}", text) for text in low)
        ]
        failures += [Failure(fixture=one.id, output=texts, problem=problem) for problem in problems]
    return failures


SENTENCES: tuple[Sentence, ...] = (
    Sentence(
        id="fifth child",
        text="She was the fifth child and youngest daughter of a miner.",
        kept=("He was the fifth child and youngest son of a miner.",),
        never=("fifth boy", "fifth trans boy"),
    ),
    Sentence(
        id="old boy",
        text="The novel tells of a young boy named Ferris.",
        kept=("The novel tells of a young girl named Ferris.", "The novel tells of a teenage boy named Ferris."),
        never=("old boy", "elderly boy", "middle-aged boy"),
    ),
    Sentence(
        id="kid's meal",
        text="I ordered a kid's meal with milk.",
        never=("trans boy's meal", "transgender girl's meal", "nonbinary child's meal"),
    ),
    Sentence(
        id="white American",
        text="The white American farmer said that she was tired.",
        kept=(
            "The Asian American farmer said that she was tired.",
            "The white British farmer said that she was tired.",
            "The white American farmer said that they were tired.",
        ),
        never=("asian american american", "african american american", "native american american"),
    ),
    Sentence(
        id="black British",
        text="The black British singer won with her song.",
        kept=("The Asian British singer won with her song.", "The black British singer won with his song."),
        never=("native american british", "african american british", "asian american british"),
    ),
    Sentence(
        id="first female",
        text="She was the first female and adult in the race.",
        kept=("He was the first male and adult in the race.",),
        never=("female and woman", "female and man", "female and trans"),
    ),
    Sentence(
        id="they in Markdown",
        text="**She** *is* a physicist. **She** works hard.",
        kept=("**They** *are* a physicist. **They** work hard.", "**He** *is* a physicist. **He** works hard."),
        never=("they** *is", "they** works"),
    ),
    Sentence(
        id="title case",
        text="A Woman's Guide to Court",
        kept=("A Trans Woman's Guide to Court", "A Man's Guide to Court"),
        never=("an woman",),
    ),
    Sentence(
        id="capital",
        text="I met the Black woman there.",
        kept=("I met the multiracial woman there.", "I met the Black man there."),
    ),
    Sentence(
        id="mother-of-two",
        text="A Somali mother-of-two said that she was tired.",
        kept=("A Somali father-of-two said that he was tired.", "A Kenyan mother-of-two said that she was tired."),
        never=("somali mother-of-two said that he", "somali mother-of-two said that they"),
    ),
    Sentence(
        id="Frenchman",
        text="The Frenchman said that he was tired.",
        kept=("The Frenchwoman said that she was tired.", "The French person said that they were tired."),
        never=("frenchman said that she", "irishman", "englishman", "dutchman", "welshman", "scotsman"),
    ),
    Sentence(
        id="Majesty",
        text="Her Majesty opened the school with her sister.",
        kept=("His Majesty opened the school with his brother.",),
        never=("his majesty opened the school with her", "him majesty"),
    ),
    Sentence(
        id="Excellency",
        text="His Excellency brought a letter from his president.",
        kept=("Her Excellency brought a letter from her president.",),
        never=("hers excellency", "her excellency brought a letter from his"),
    ),
    Sentence(
        id="brother bond",
        text="There is a strong brother bond between the two boys.",
        never=("strong sister bond", "strong trans"),
    ),
    Sentence(
        id="Israel",
        text="Jews and Arabs in Israel marched.",
        kept=("Christians and Arabs in Israel marched.",),
        never=("hindus and arabs",),
    ),
    Sentence(
        id="emoji",
        text="My boyfriend 😍 made me a cake. He even asked my grandma!!",
        kept=("My partner 😍 made me a cake. They even asked my grandma!!",),
        never=("boyfriend 😍 made me a cake. she",),
    ),
    Sentence(
        id="Mr. and Ms.",
        text="Mr. Hall said that he was late.",
        kept=("Ms. Hall said that she was late.", "Mx. Hall said that they were late."),
        never=("ms. hall said that he", "mr. hall said that she"),
    ),
    Sentence(
        id="his and hers",
        text="The decision is his, not mine. He bought the red car, and the blue one is his.",
        kept=("The decision is hers, not mine. She bought the red car, and the blue one is hers.",),
        never=("is her, not", "is her."),
    ),
    Sentence(
        id="HTML",
        text="<p>Meet <b>our director</b>: <i>she</i> is a judge.</p>",
        kept=(
            "<p>Meet <b>our director</b>: <i>he</i> is a judge.</p>",
            "<p>Meet <b>our director</b>: <i>they</i> are a judge.</p>",
        ),
        never=("they</i> is",),
    ),
    Sentence(
        id="quotes",
        text='"Is she coming?" asked the boy.',
        kept=('"Is he coming?" asked the boy.', '"Are they coming?" asked the boy.'),
        never=("is they",),
    ),
    Sentence(
        id="bystanders of a gender",
        text="Nine years as a counselor, mostly with young Black men leaving prison. She sets limits and is calm.",
        kept=("Nine years as a counselor, mostly with young Black men leaving prison. He sets limits and is calm.",),
        never=("young black women", "young white men", "young asian men"),
        subject=True,
    ),
    Sentence(
        id="title without capitals",
        text="i loved the english patient more than the english nurse did .",
        never=("the somali patient", "the polish patient", "the french patient"),
    ),
    Sentence(
        id="only one",
        text="She was the only woman in the room, and the men remember it in another way.",
        never=("woman in the room, and the women",),
    ),
    Sentence(
        id="noun before a person",
        text="The party girl left early.",
        never=("party trans", "party nonbinary", "party transgender"),
    ),
    Sentence(
        id="her before a verb",
        text="The woman who taught her sits in the last row.",
        kept=("The man who taught him sits in the last row.",),
        never=("taught his sits",),
    ),
    Sentence(
        id="what a body says",
        text="The pregnant teacher said she would be back. Her uncle strokes his beard.",
        never=("teacher said he", "strokes her beard"),
    ),
    Sentence(
        id="what belongs to a belief",
        text="The Hindu priest lit a lamp in the temple and blessed his guests.",
        never=("the christian priest", "the protestant priest", "the roman catholic priest"),
    ),
    Sentence(
        id="bystanders of a race",
        text="A landscaper with an eye for drains. The Native American elders on the council hired her twice.",
        kept=("A landscaper with an eye for drains. The Native American elders on the council hired him twice.",),
        never=("the black elders", "the white elders", "the asian elders", "the hispanic elders"),
        subject=True,
    ),
)
