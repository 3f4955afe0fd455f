"""Texts for `auditor.testing.check_mutator`, and what may come of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class MutatorFixture:
    """One text and what may come of it.

    ``must_equal_one_of`` lists the acceptable results; empty means that nothing in the text names the source
    group, so that the only acceptable results are none and the text itself. ``must_not_contain`` holds the
    published wrong results: phrases in lower case that begin at a word. ``why`` says what went wrong where.
    """

    id: str
    text: str
    attribute: str
    source_group: str
    target_group: str
    must_equal_one_of: tuple[str, ...] = ()
    must_not_contain: tuple[str, ...] = ()
    why: str


def _case(
    attribute: str, name: str, text: str, direction: str, *good: str, bad: tuple[str, ...] = (), why: str
) -> MutatorFixture:
    source, _, target = direction.partition(">")
    return MutatorFixture(
        id=name, text=text, attribute=attribute, source_group=source, target_group=target,
        must_equal_one_of=good, must_not_contain=bad, why=why,
    )  # fmt: skip


_ASIAN = ("an East Asian", "a South Asian", "a Southeast Asian")
_M_F, _F_M = "male>female", "female>male"
_SEQUENTIAL = "sequential replacement turns the second word of a pair back into the first"
_PRONOUN = "his always became hers, and her always him, whatever their place in the sentence"

MUTATOR_FIXTURES: tuple[MutatorFixture, ...] = (
    _case(
        "race",
        "race-whitespace",
        "Strip trailing whitespace from the file.",
        "white>asian",
        bad=("asianpace", "whitepace"),
        why="a term was found inside a longer word",
    ),
    _case(
        "race",
        "race-blacksmith",
        "The blacksmith hired a black man named Dr. Smith.",
        "black>asian",
        *(f"The blacksmith hired {an} man named Dr. Smith." for an in ("an Asian", "an Asian American", *_ASIAN)),
        bad=("asiansmith", "a asian"),
        why="a sub-word hit, a wrong article, and the whole text in lower case",
    ),
    _case(
        "race",
        "race-article",
        "An Asian man in Texas",
        "asian>white",
        *(f"A {white} man in Texas" for white in ("white", "Caucasian", "European American")),
        bad=("an white", "an caucasian"),
        why="the article was not repaired, and the text was put in lower case",
    ),
    _case(
        "race",
        "race-cup",
        "Japan defends their Asian Cup title.",
        "asian>hispanic",
        bad=("hispanic cup",),
        why="a competition was taken for a person",
    ),
    _case(
        "race",
        "race-colours",
        "The white wine and the black comedy were shot in black and white.",
        "white>black",
        bad=("black wine",),
        why="a colour was taken for a person",
    ),
    _case(
        "race",
        "race-everyday-words",
        "Go home; you do what the six born true will do.",
        "black>white",
        why="everyday words (Go, You, Do, Born, True, Six) stood in a list of names",
    ),
    _case(
        "race",
        "race-two-nations",
        "A white American and a black British singer met.",
        "white>asian",
        *(f"A{an[1:]} American and a black British singer met." for an in ("an Asian", *_ASIAN)),
        bad=("american american",),
        why="a term of two words was written before the word that it ends with",
    ),
    _case(
        "race",
        "race-second-nation",
        "A black British singer met an elderly black Canadian.",
        "black>native_american",
        bad=("native american british", "native american canadian"),
        why="a term that names a nation was written before another nation",
    ),
    _case(
        "nationality",
        "nationality-becomes-race",
        "A British Indian doctor called.",
        "british>american",
        bad=("american indian",),
        why="two words became the name of another group",
    ),
    _case(
        "gender", "his-possessive", "He lost his keys.", _M_F, "She lost her keys.", bad=("hers keys",), why=_PRONOUN
    ),
    _case("gender", "his-independent", "The blue car is his.", _M_F, "The blue car is hers.", why=_PRONOUN),
    _case("gender", "her-possessive", "She lost her keys.", _F_M, "He lost his keys.", bad=("him keys",), why=_PRONOUN),
    _case("gender", "her-object", "The panel thanked her.", _F_M, "The panel thanked him.", why=_PRONOUN),
    _case("gender", "hers", "The blue car is hers.", _F_M, "The blue car is his.", why=_PRONOUN),
    _case(
        "gender",
        "case-kept",
        "ACME hired HER in Paris; Her boss left.",
        _F_M,
        "ACME hired HIM in Paris; His boss left.",
        why="the variant was in lower case, so that it differed from the original in more than the group",
    ),
    _case(
        "gender",
        "girlfriend",
        "My girlfriend left.",
        _F_M,
        "My boyfriend left.",
        why="the word list had a typing error",
    ),
    _case("gender", "wife", "My wife left.", _F_M, "My husband left.", why="the word list had no wife and no husband"),
    _case(
        "gender",
        "titles",
        "Mr. Jones called.",
        _M_F,
        "Ms. Jones called.",
        "Mrs. Jones called.",
        "Miss Jones called.",
        why="titles with a full stop were never matched",
    ),
    _case(
        "gender",
        "mother-and-father",
        "My mother and father are doctors",
        _F_M,
        "My father and mother are doctors",
        bad=("mother and mother", "father and father"),
        why=_SEQUENTIAL,
    ),
    _case(
        "gender",
        "man-and-woman",
        "the man and the woman shook hands",
        _M_F,
        "the woman and the man shook hands",
        bad=("man and the man", "woman and the woman"),
        why=_SEQUENTIAL,
    ),
    _case(
        "gender",
        "he-and-she",
        "he told the nurse that she was late",
        _F_M,
        "she told the nurse that he was late",
        bad=("he told the nurse that he was", "she told the nurse that she was"),
        why="two people became one",
    ),
    _case(
        "gender",
        "punctuation",
        "She, a waitress, left.",
        _F_M,
        "He, a waiter, left.",
        bad=("she,", "waitress,"),
        why="words with punctuation attached were not found",
    ),
    _case(
        "gender",
        "sentence-start",
        "he went to the market, and there he had a soup.",
        _M_F,
        "she went to the market, and there she had a soup.",
        why="a word at the start of the text was not found",
    ),
    _case(
        "gender",
        "bidirectional",
        "The doctor said she trusts the nurse because he listens.",
        _F_M,
        "The doctor said he trusts the nurse because she listens.",
        bad=("he trusts the nurse because he", "she trusts the nurse because she"),
        why=_SEQUENTIAL,
    ),
    _case(
        "gender",
        "plural-they",
        "Japan defends their Asian Cup title.",
        _M_F,
        bad=("hers asian", "her asian"),
        why="their was taken for one person's pronoun, and hers was accepted before a noun",
    ),
    _case(
        "gender",
        "compounds",
        "The brahman met a b-girl at a manhole.",
        _F_M,
        bad=("brahwoman", "escort", "b-boy"),
        why="dictionary entries were built from word parts",
    ),
    _case(
        "gender",
        "multi-word",
        "My mother-in-law called.",
        _F_M,
        "My father-in-law called.",
        bad=("father_in_law",),
        why="entries of several words were stored with underscores and never matched",
    ),
    _case(
        "gender",
        "gender-heading",
        "A Woman's Guide to Court",
        "female>trans_female",
        "A Trans Woman's Guide to Court",
        "A Transgender Woman's Guide to Court",
        why="in a heading only the first written word got its capital",
    ),
    _case(
        "gender",
        "gender-they-markdown",
        "**She** *is* a physicist.",
        "female>nonbinary",
        "**They** *are* a physicist.",
        bad=("they** *is",),
        why="markup between pronoun and verb hid the verb",
    ),
    _case(
        "gender",
        "gender-frenchman",
        "The Frenchman said that he was tired.",
        "male>female",
        "The Frenchwoman said that she was tired.",
        bad=("frenchman said that she",),
        why="a nation with a gender in it was left behind",
    ),
    _case(
        "gender",
        "gender-mother-of-two",
        "A Somali mother-of-two said that she was tired.",
        "female>male",
        "A Somali father-of-two said that he was tired.",
        bad=("mother-of-two said that he",),
        why="a hyphenated word was left behind",
    ),
    _case(
        "gender",
        "gender-excellency",
        "His Excellency brought a letter from his president.",
        "male>female",
        "Her Excellency brought a letter from her president.",
        bad=("their excellency",),
        why="a form of address was taken for a possession",
    ),
    _case(
        "gender",
        "gender-in-person",
        "She came in person.",
        "unmarked>trans_male",
        bad=("in trans man",),
        why="a phrase was taken for a person",
    ),
    _case(
        "race",
        "race-capital",
        "I met the Black woman there.",
        "black>multiracial",
        "I met the multiracial woman there.",
        "I met the biracial woman there.",
        "I met the mixed-race woman there.",
        why="a capital that the new word does not have was carried over",
    ),
)

_OTHERS = "words of people who are not judged were changed with those of the applicant"

# What changes where the applicant alone is meant (`auditor.testing.mutate_subject`).
PERSON_FIXTURES: tuple[MutatorFixture, ...] = (
    _case(
        "gender",
        "person-bystanders",
        "Nine years as a counselor, mostly with young men leaving prison. She sets limits and keeps them.",
        _F_M,
        "Nine years as a counselor, mostly with young men leaving prison. He sets limits and keeps them.",
        bad=("young women",),
        why=_OTHERS,
    ),
    _case(
        "race",
        "person-elders",
        "A Hispanic landscaper with an eye for drains. The Native American elders on the council hired her.",
        "native_american>white",
        why=_OTHERS,
    ),
    _case(
        "race",
        "person-race",
        "A Hispanic landscaper with an eye for drains. The Native American elders on the council hired her.",
        "hispanic>black",
        "A black landscaper with an eye for drains. The Native American elders on the council hired her.",
        "An African American landscaper with an eye for drains. The Native American elders on the council hired her.",
        "A Black American landscaper with an eye for drains. The Native American elders on the council hired her.",
        why=_OTHERS,
    ),
    _case(
        "gender",
        "person-boss",
        "The applicant says that her manager trusted her with the keys. He wrote a warm letter about her.",
        _F_M,
        "The applicant says that his manager trusted him with the keys. He wrote a warm letter about him.",
        bad=("she wrote",),
        why=_OTHERS,
    ),
    _case(
        "gender",
        "person-apposition",
        "The applicant, a woman of thirty, trained two men on the night shift.",
        _F_M,
        "The applicant, a man of thirty, trained two men on the night shift.",
        bad=("two women",),
        why=_OTHERS,
    ),
    _case(
        "gender",
        "person-possessor",
        "He learned the trade from his mother and now runs her shop.",
        _M_F,
        "She learned the trade from her mother and now runs her shop.",
        bad=("father", "runs his shop"),
        why="what one has of another person was changed with that person",
    ),
    _case(
        "gender",
        "person-title",
        "Mr. Hall asked for a loan. He told our clerk that she should hurry.",
        _M_F,
        "Ms. Hall asked for a loan. She told our clerk that she should hurry.",
        "Mrs. Hall asked for a loan. She told our clerk that she should hurry.",
        why=_OTHERS,
    ),
    _case(
        "gender",
        "person-partner",
        "She cooks well, and her husband keeps the books.",
        _F_M,
        why="the edit also changed whom the person loves",
    ),
    _case(
        "gender",
        "person-not-clear",
        "The nurse told the clerk that she was late.",
        _F_M,
        why="a word was given to one of two people without a reason",
    ),
)
