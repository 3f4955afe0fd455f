"""Closed word lists of the agreement rules, in lower case."""

from __future__ import annotations

import re

from auditor.text.english import FUNCTION_WORDS, word_set

SINGULAR = word_set(
    """man woman person guy girl boy lady gentleman mother father husband wife daughter son sister
    brother aunt uncle nephew niece grandmother grandfather mom dad mum girlfriend boyfriend partner
    spouse parent child kid teenager adult human individual immigrant lesbian actor actress waiter
    waitress king queen prince princess widow widower bride groom lad lass businessman businesswoman
    policeman policewoman"""
)
PLURAL = word_set(
    """men women people persons guys girls boys ladies gentlemen mothers fathers husbands wives daughters
    sons sisters brothers aunts uncles nephews nieces grandmothers grandfathers moms dads mums
    girlfriends boyfriends partners spouses parents children kids teenagers adults humans individuals
    immigrants lesbians males females actors actresses waiters waitresses kings queens princes
    princesses widows widowers brides grooms lads lasses businessmen businesswomen policemen
    policewomen arabs jews muslims christians hindus britons latinos latinas hispanics turks poles
    swedes danes scots greeks iraqis israelis pakistanis saudis somalis thais asians africans
    americans europeans"""
)
ADJECTIVES = word_set(
    """young old older younger elderly middle-aged white black asian african latino latina hispanic arab
    american british chinese indian mexican european jewish muslim christian gay straight trans
    transgender queer bisexual disabled blind deaf poor rich tall short fat thin beautiful handsome
    pretty good bad great nice little big strong smart single married"""
)
NATION = re.compile(r"[A-Z][a-z]{2,}ans")

ONE = word_set("a an this every each another")
MANY = word_set("these those many several few two three four five six seven eight nine ten")

THIRD = word_set("he she")
OTHERS = word_set("they we")
BASE = word_set(
    """are have do don't aren't haven't am go want need like love know think say make get come see live
    work seem look feel take give"""
)
INFLECTED = word_set(
    """is was has does isn't wasn't hasn't doesn't goes wants needs likes loves knows thinks says makes
    gets comes sees lives works seems looks feels takes gives"""
)
# Before a pronoun these make a bare verb right: questions, "let", demands, wishes.
LOOSENS = word_set(
    """do does did can could will would shall should may might must don't doesn't didn't can't cannot
    couldn't won't wouldn't shouldn't let make made had have has help that lest suggest suggests
    suggested insist insists insisted demand demanded recommend recommended"""
)
WISHES = word_set("if wish wishes wished though as whether unless than suppose lest until rather only")

PREPOSITIONS = word_set("to with from of by about at into onto toward towards against among around behind beside")
GIVING = word_set(
    "gave give gives given told tell tells married marry thanked thank hired hire kissed kiss invited invite"
)
PRONOUNS = word_set("he she him her his hers himself herself they them their")
SUBJECT = word_set("he she they we")
OBJECT = word_set("him them me us")
FINITE = word_set("is are was were has does did will would can could isn't wasn't aren't weren't")
CLAUSE = word_set("because if when while although since unless then so")
BARE_POSSESSIVE = word_set("my our their")
ABSOLUTE = word_set("hers theirs ours yours mine")
AFTER_POSSESSIVE = word_set(
    "is are was were has have had the a an to of for with at from will would can could . , ; ! ?"
)
OWNED = word_set(
    """wife husband mother father mom dad son daughter sister brother parents family career eyes own face
    voice body"""
)
OWNED_STRICT = OWNED - word_set("own face voice mother father")
REPEATS = word_set(
    "the a an of to at by for with from and or but his its him he she they them we my our their i am are were"
)
COMPLEMENTS = CLAUSE | word_set("that whether before after how what where why which who")
PAST = word_set(
    """said says added stated mentioned told asked went came got made took gave saw knew thought wanted
    looked felt left found ran died began seems seemed did tried used"""
)
AFTER_OBJECT = word_set(". , ; ! ? in on to of at from by for into with about out up")
NO_OBJECT = FUNCTION_WORDS | FINITE | PAST | word_set("say says am be been ain't did'nt")
NOT_OWNED = FUNCTION_WORDS | FINITE | PAST | word_set("home today tomorrow etc due ever free alive anymore")
ADVERBS = word_set("always sometimes perhaps besides nowadays overseas towards afterwards this's thus yes pls alas")
MANY_OF = word_set("few hundred thousand million billion dozen couple lot many great good bunch")
EITHER_ARTICLE = ("histor", "hotel", "hero", "horrif", "habitual", "hallucin", "hilar", "hyster", "herb", "hispanic")
LETTER_A = word_set("is are and or in of as at if am it on i a i.e e.g")
