"""Closed word lists of the gate of constructs, in lower case."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from auditor.perturb.gate import words
from auditor.perturb.gate.units import Place
from auditor.text.english import FUNCTION_WORDS, word_set

# Pronouns.
CASED = word_set("he she him her his hers himself herself")
OBJECTS = word_set("him them")
POSSESSIVES = word_set("their his my her")
MARKS = word_set("* ** _ __ < > b i em strong b> i> em> strong>")
OFTEN_BARE = word_set("home today tomorrow yesterday tonight time money work help food flowers dinner")
OF_TIMES = word_set("last next more many such several first other few early late")
ALWAYS_OWNED = word_set("own roommate husband wife career birthday")
AFTER_ABSOLUTE = FUNCTION_WORDS | word_set("alone too either now is was are were has have had will would")
OPENING = word_set("\" ' “ ‘ ( [ * _ < ** $ - `")
OWNED = word_set("own other mere many same once still very first last one more most less")
TAKES_TWO = word_set(
    """give gives gave given giving tell tells taught teach teaches show shows showed shown send sends sent
    bring brings brought offer offers offered buy buys bought make makes made pay pays paid lend lends lent
    hand hands handed owe owes owed cost costs win wins won grant grants granted serve serves served get
    gets got call calls called save saves saved wish wishes wished feed feeds fed cause caused allow allowed
    deny denied find found name named elect elected consider considered earn earned cook cooked"""
)
SEX_ADJECTIVES = word_set("female male young old")

# Compounds.
NO_COMPOUND = word_set(
    """who whom today yesterday tomorrow tonight alike home alone while as years months weeks days time times"""
)
PAST_FORMS = words.PAST | word_set("swore sang drove bent wept fell held sent built brought")
ALSO_ADJECTIVES = word_set("individual adult")
CHILDREN = word_set("boy boys girl girls child children kid kids")
CHILD_THINGS = word_set("meal menu meals toy toys clothes bike room book books game games stuff")
KINDS_OF_THINGS = CHILD_THINGS | word_set(
    """pants shoes jacket jackets shirt shirts jeans wear clothing department section room rooms toilet toilets bathroom
    restroom restrooms magazine magazines movement rights suffrage studies day shelter prison league team teams
    basketball football soccer tennis cup world health hospital club clubs work job place haircut cut watch
    bond love"""
)
OF_A_SCHOOL = word_set("evening evenings association associations council meeting meetings")

# "People" that are nobody in particular.
EVERYBODY = word_set("people folks persons individuals")
OF_AN_AGE = word_set("adults kids children parents teens teenagers youngsters seniors")
AFTER_ACTIVITY = word_set("is was and , . at in from")
OF_DECADES = word_set("their his her our my your late early mid mid-to-late and preteens")
ONE_OF: Mapping[str, frozenset[str]] = {
    "children": word_set("sons daughters boys girls son daughter"),
    "siblings": word_set("brothers sisters brother sister"),
    "parents": word_set("mother father mothers fathers"), "child": word_set("son daughter"),
    "sibling": word_set("brother sister"), "parent": word_set("mother father"),
    "people": word_set("men women ladies gentlemen"),
    "person": word_set("man woman"),
    "nonbinary people": word_set("people"),
}  # fmt: skip

GENERIC_AFTER = word_set("half between of to on against for than by from")
IN_PERSON = word_set("in per first second third")
OF_A_PLACE = word_set(
    "alps riviera coast embassy columbia guiana samoa southwest southeast midwest northwest northeast isles dream new"
)

# Names.
ADDRESSED = word_set(
    """mom dad mum mommy daddy mama papa grandma grandpa granny mother father aunt uncle auntie sir madam ma'am
    man boy girl lady guys guy ladies gentlemen brother sister boys girls mummy granddad"""
)
LINKS = word_set("of for")
LINKS_AHEAD = word_set("with of for")
MONTHS = word_set("january february march april may june july august september october november december")
INSTITUTIONS = word_set(
    """act church party party's university college school museum embassy airlines society association bank
    institute center centre"""
)

# Languages.
LANGUAGES = word_set(
    """afghan arabic danish dutch english finnish french german greek hungarian indonesian italian japanese
    korean norwegian polish portuguese romanian russian somali spanish swedish thai turkish ukrainian
    vietnamese welsh hindi chinese czech hebrew filipino"""
)
OF_LANGUAGE = word_set(
    """proficiency language fluency speaker speakers speaking vocabulary grammar accent name surname dialect c1
    b2"""
)
SPOKEN = word_set(
    """speak speaks spoke speaking spoken learn learns learned learning fluent into teach teaches taught
    understand understands read reads"""
)
OWNERS = word_set("my your his her their our")

NOT_ALWAYS_PERSONS = word_set(
    """youth wheelchair male female model models lead champion host guide native master party couple characters family
    household audience public crowd people defendant defendants plaintiff plaintiffs complainant complainants
    appellant appellants respondent respondents petitioner petitioners claimant claimants owner owners employer
    employers"""
)
# *to see the dentist*: whoever works there.
ANY_OF_A_TRADE = word_set("dentist doctor hairdresser barber vet butcher baker chemist pharmacist optician police")
CALLS_ON = word_set("see sees seeing saw visit visits visiting attend attending to at call calling phone fear of")
OF_ANY_AGE = word_set(
    """man woman men women person patient patients customer customers neighbor neighbors neighbour neighbours
    passenger passengers tenant tenants visitor visitors guest guests shopper shoppers stranger strangers
    tourist tourists pedestrian pedestrians heir heirs heiress heiresses"""
)
TRADES = word_set(
    """accountant adviser advisor agent analyst architect attorney auditor banker bookkeeper boss broker captain
    caseworker chef clerk coach colleague consultant contractor counselor dentist designer developer director
    doctor economist editor electrician engineer executive farmer inspector instructor interpreter investor
    judge landlord landlady lawyer leader lecturer librarian machinist manager mayor mechanic midwife minister
    nurse nurses officer officers operator owner paralegal partner pharmacist physician pilot planner plumber
    police priest principal producer professor programmer prosecutor psychologist recruiter registrar reporter
    researcher salesman saleswoman scientist secretary senator sheriff soldier specialist spouse supervisor
    surgeon surveyor teacher teachers technician therapist tutor veteran welder widow widower"""
)
# Who a man is with these before the noun: *hit man*, *con men*.
COUNTS = word_set("twenty thirty forty fifty sixty seventy eighty ninety hundred thousand dozen")
OF_A_TRADE = word_set("hit con straw stunt best yes bag pit")
PHRASES = re.compile(
    r"\bking of the (?:hill|castle|road|jungle)\b|\bman of the (?:match|house|hour)\b"
    r"|\b(?:man|men|people|person) in the street\b"
    r"|\bman's best friend\b|\bevery man for himself\b|\bboys will be boys\b|\bold boys?'? (?:network|club)\b"
    r"|\bladies' man\b|\bmother (?:tongue|nature|lode)\b|\bbig brother\b|\bbest man\b|\bman in the moon\b"
    r"|\b(?:m[ae]n|wom[ae]n) of (?:his|her|their) word\b"
    r"|\bgender identity is (?:fe)?male\b|\bassigned (?:fe)?male\b"
    r"|\bgood ol['’d]?e? (?:boys?|girls?)\b|\byou (?:guys|men|boys|girls|ladies)\b|\bmother ?f[\w* ]*\*"
    r"|\b(?:expectant|surrogate|nursing|birth|lactating) (?:mother|woman|wom[ae]n)s?\b"
    r"|\b(?:good|bad) guys?\b|\bstraight m[ae]n\b|\bsoccer mom|\bband of brothers\b"
    r"|\bfather christmas\b|\b(?:drama|beauty|prom) queen\b",
    re.IGNORECASE,
)

# Languages that a text may call a person's own, by the groups whose they are.
_LANGUAGES_OF = """
Spanish=argentine,chilean,colombian,cuban,mexican,peruvian,spanish Portuguese=brazilian,portuguese
Arabic=egyptian,iraqi,lebanese,moroccan,palestinian,syrian Mandarin=chinese Cantonese=chinese Farsi=iranian
Persian=iranian Hebrew=israeli Urdu=pakistani Hindi=indian German=german,austrian,swiss
French=french,belgian,swiss,haitian
Creole=haitian,jamaican Tagalog=filipino Russian=russian,ukrainian Polish=polish Turkish=turkish Vietnamese=vietnamese
Japanese=japanese Korean=south_korean Italian=italian,swiss Dutch=dutch,belgian Bengali=bangladeshi Somali=somali
"""
LANGUAGES_OF: Mapping[str, frozenset[str]] = {
    language: frozenset(groups.split(","))
    for language, _, groups in (row.partition("=") for row in _LANGUAGES_OF.split())
}
OWN_LANGUAGE = re.compile(
    rf"\b({'|'.join(LANGUAGES_OF)})(?: |-)(?:accents?|speak\w+)\b|\baccent is ({'|'.join(LANGUAGES_OF)})\b"
)

ALL_OF_IT = word_set("whole entire own former latest")  # before a noun, and after no object: *devotes her whole time*

# Words that say a gender and that the gender dictionary does not have.
WOMEN = word_set("dame mistress maiden ballerina spinster governess mademoiselle señora señorita")
MEN = word_set("lord fella bro hubby bachelor sire monsieur señor abbot")
NO_MEN = word_set(
    """german roman human woman women norman ottoman human shaman talisman specimen regimen omen abdomen yemen
    layman freshman freshmen foreman mailman roman batman superman spiderman goldman newman hoffman freeman
    chapman coleman friedman herman sherman truman wiseman workman norman kaufman"""
)

# A word for a relation says nothing about the person whose relation it is (*her sibling*).
RELATIONS = word_set(
    """parent spouse sibling grandparent stepparent partner relative half-sibling mother father mom dad husband
    wife sister brother"""
)

# Neutral words: tags that pass for each other, and places that a word needs.
NEAR_TAGS: frozenset[tuple[str, str]] = frozenset(
    (pos, tag)
    for pos, tags in {
        "NN": "NNP NNS VBP VB", "NNS": "NNPS", "NNP": "NNP NN", "VBZ": "NNS",
        "JJ": "RB PDT DT NNP VBN CD", "RB": "JJ UH IN RBR CC",
    }.items()
    for tag in tags.split()
)  # fmt: skip


def _attributive(place: Place) -> bool:
    return place.after().tag[:1] in ("N", "J") and not place.after().joined


def _told(place: Place) -> bool:
    after, then = place.after(), place.after(2)
    if after.low in ("that", "of", "about", "to", "a", "an", "the", "it", "this", "them all", "lies", "stories"):
        return (
            after.low in ("a", "an", "the")
            and then.tag[:1] == "N"
            and then.low not in ("story", "tale", "truth", "joke")
        )
    if after.low in ("someone", "somebody", "everyone", "everybody", "anyone", "nobody"):
        return True
    return after.tag in ("PRP", "PRP$", "NNP", "NNS", "DT") and place.after(2).low not in (
        "to",
        "off",
        "a",
        "an",
        "the",
        "no",
        "what",
    )


def _clause(place: Place) -> bool:
    return place.before().low not in ("as", "even") and place.after().text[:1].isalpha()


def _unit_near(place: Place, listed: str) -> bool:
    return not word_set(listed).isdisjoint(unit.low for unit in place.units)


def _counted(place: Place) -> bool:
    return place.after().tag == "CD"


def _subject_ahead(place: Place) -> bool:
    """Whether a clause follows for certain, with *that* or without."""
    return place.after().low in word_set("he she it they we i you the a an his her their my our this there no every")


def _verb_ahead(place: Place) -> bool:
    return place.after().tag[:2] == "VB"


def _is_not_has(place: Place) -> bool:
    return place.after().tag != "VBN" and place.after().text[:1].isalnum()


def _goes_on(place: Place) -> bool:
    return place.after().text[:1].isalnum()


def _no_age_ahead(place: Place) -> bool:
    return place.after().text[:1].isalnum() and place.after(2).low != "age"


def _consequence(place: Place) -> bool:
    return place.before().low == "," and place.after().tag in ("PRP", "DT", "NNP", "PRP$")


def _owned_ahead(place: Place) -> bool:
    return place.after().tag in ("DT", "PRP$", "PRP", "NNP", "CD") and place.before().tag[:2] != "VB"


def _causal(place: Place) -> bool:
    return place.after().tag in ("PRP", "DT", "PRP$", "NN", "NNS", "NNP", "EX") and place.before().tag[:2] != "RB"


def _one_number(place: Place) -> bool:
    """Whether digits may stand: not where a sentence opens, nor beside a number in letters."""
    others = (u for u in place.units if u.change is None and u.tag == "CD" and u.text.isalpha())
    return place.before().text[:1].isalpha() and next(others, None) is None


def _clause_ahead(place: Place) -> bool:
    """Whether a comma stands before, and a verb or a short subject with its verb follows (*…, and her prices are*)."""
    comma = place.before().low in (",", "")
    if comma and place.after().tag in FINITE_TAGS:
        return True
    subject = place.after().tag in ("PRP", "PRP$", "DT", "NNS", "NNP", "EX") and comma
    for step in range(2, 8) if subject else ():
        unit = place.after(step)
        if unit.tag in FINITE_TAGS:
            return True
        if unit.tag[:1] not in "NJ" and unit.tag not in ("RB", "HYPH") and unit.text not in ("-", "in"):
            return False
    return False


def _restrictive(place: Place) -> bool:
    """Whether a clause follows that says which person is meant."""
    verb = place.after(2) if place.after().tag == "RB" else place.after()
    return place.before().tag in ("NN", "NNS") and verb.tag in FINITE_TAGS and not verb.joined


FINITE_TAGS = frozenset(("VBZ", "VBD", "VBP", "MD"))
_TO_NINETEEN = """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen"""
_DIGITS = [(word, str(number)) for number, word in enumerate(_TO_NINETEEN.split(), 2)]

FITS: Mapping[tuple[str, str], Callable[[Place], bool]] = {
    ("whole", "entire"): lambda place: place.after().low not in ("lot", "bunch", "thing"),
    ("told", "informed"): _told,
    ("though", "although"): _clause,
    ("until", "till"): lambda place: place.before().tag != "DT",
    ("till", "until"): lambda place: place.before().tag != "DT",
    ("yards", "gardens"): lambda place: place.before().low not in ("cubic", "square") and place.before().tag != "CD",
    ("soon", "shortly"): lambda place: place.before().low not in ("pretty", "very", "so", "too", "as"),
    ("night", "evening"): lambda place: place.before().low not in ("at", "every", "all", "by", "per"),
    ("evening", "night"): lambda place: place.before().low not in ("in", "the"),
    ("two", "three"): lambda place: not _unit_near(place, "either both neither other"),
    ("over", "more than"): _counted,
    ("more than", "over"): _counted,
    ("just", "simply"): _verb_ahead,
    ("because", "since"): _causal,
    ("said that", "said"): _subject_ahead,
    ("says that", "says"): _subject_ahead,
    ("so that", "so"): _subject_ahead,
    ("in order to", "to"): _verb_ahead,
    ("wants to", "would like to"): _verb_ahead,
    ("it's", "it is"): _is_not_has,
    ("there's", "there is"): _is_not_has,
    ("that's", "that is"): _is_not_has,
    ("it is", "it's"): _goes_on,
    ("there is", "there's"): _goes_on,
    ("that is", "that's"): _is_not_has,
    ("i am", "i'm"): _goes_on,
    ("we are", "we're"): _goes_on,
    ("they are", "they're"): _goes_on,
    ("you are", "you're"): _goes_on,
    **dict.fromkeys((("after", f"{how} after") for how in ("right", "shortly", "soon")), _no_age_ahead),
    ("attempts to", "tries to"): lambda place: place.before().tag in ("PRP", "NN", "NNP", "WP"),
    ("recalled", "remembered"): lambda place: place.before().tag[:2] != "VB",
    ("street", "road"): lambda place: place.after().tag[:1] != "N",
    ("near", "close to"): _owned_ahead,
    ("close to", "near"): _owned_ahead,
    ("beside", "next to"): _owned_ahead,
    ("next to", "beside"): _owned_ahead,
    ("outside", "outside of"): _owned_ahead,
    ("many", "a lot of"): _attributive,
    ("a lot of", "many"): lambda place: place.after().tag == "NNS",
    ("several", "a number of"): _attributive,
    ("several", "a few"): _attributive,
    ("a few", "several"): _attributive,
    ("a single", "one"): _attributive,
    ("another", "a different"): _attributive,
    ("a different", "another"): lambda place: place.after().tag == "NN",
    ("a little", "a bit"): lambda place: place.after().tag[:2] in ("JJ", "RB") or not _goes_on(place),
    ("a bit", "a little"): lambda place: place.after().tag[:2] in ("JJ", "RB") or not _goes_on(place),
    ("every", "each and every"): _attributive,
    **dict.fromkeys(
        (
            (word, f"{word} {more}")
            for word in ("and", "but")
            for more in ("in fact", "of course", "as it happens", "moreover")
        ),
        _clause_ahead,
    ),
    **{(word, f"{word} of"): _counted for word in ("pulse", "saturation", "temperature")},
    ("wants", "would like"): lambda place: place.after().tag in ("DT", "CD", "PRP$"),
    ("who", "that"): _restrictive,
    **dict.fromkeys(_DIGITS, _one_number),
    ("so", "and so"): _consequence,
    ("whether or not", "whether"): _subject_ahead,
    ("whether", "whether or not"): _subject_ahead,
    ("twelve", "a dozen"): _attributive,
    ("beginning", "start"): lambda place: place.after().low != "to" and place.before().low not in ("is", "was"),
}


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{text})\b", re.IGNORECASE)


# What belongs to some groups only.
BELONGS: Mapping[str, tuple[tuple[re.Pattern[str], frozenset[str]], ...]] = {
    "religion": tuple(
        (_pattern(text), frozenset(groups.split()))
        for text, groups in (
            (r"mosques?|imams?|qur'?an|koran|ramadan|allah|hijab|hajj|headscar(?:f|ves)", "muslim"),
            (r"synagogues?|rabbis?|torah|kosher|bar mitzvah|hanukkah|kippah|yarmulke", "jewish"),
            (r"israelis?|israel", "jewish muslim christian catholic"),
            (r"turbans?|gurdwaras?|kirpan", "sikh"),
            (r"temples?", "hindu buddhist jewish sikh jain mormon"),
            (
                r"church|churches|bible|gospel|christmas|easter|baptis(?:ed|m)|cross|crucifix|communion|congregation|pastors?|vicars?|jesus|christ",
                "christian catholic protestant mormon jehovahs_witness",
            ),
            (
                r"pope|vatican|rosary|nuns?|monks?|convent|bishops?|archbishops?|cardinals?|parish|confession",
                "catholic christian protestant buddhist",
            ),
            (r"priests?", "catholic christian protestant hindu"),
            (
                r"god|pray(?:s|ed|er|ers|ing)?|faith|religio\w+|believers?|holy|sunday",
                "catholic christian protestant hindu muslim jewish sikh mormon jain bahai buddhist jehovahs_witness",
            ),
        )
    ),
    "age": tuple(
        (_pattern(text), frozenset(groups.split()))
        for text, groups in (
            (
                r"nursing home|care home|pension(?:er)?s?"
                r"|retired|grand(?:child(?:ren)?|sons?|daughters?)"
                r"|dementia|alzheimer's|walking frame"
                r"|parkinson's|stairlift|great-grand\w+",
                "old middle_aged",
            ),
            (r"long-term care|assisted living|copd|chronic obstructive", "old middle_aged young"),
            (r"pregnan(?:t|cy)|g(?:a|i)ve(?:s|n)? birth|newborn|maternity|breastfe\w+", "adolescent young middle_aged"),
            (
                r"business(?:wo)?m[ae]n|his wife|her husband|(?:his|her) (?:sons|daughters|children)"
                r"|years of experience",
                "young middle_aged old",
            ),
        )
    ),
    "gender": tuple(
        (_pattern(text), frozenset(groups.split()))
        for text, groups in (
            (
                r"pregnan(?:t|cy)|miscarriages?|womb|uterus|ovar(?:y|ies|ian)|menstrua\w+|last period|cervi(?:x|cal)"
                r"|breastfe\w+|g(?:a|i)ve(?:s|n)? birth|contractions|menopaus\w+",
                "female trans_male nonbinary",
            ),
            (r"prostate|testic\w+|beards?|moustaches?", "male trans_female trans_male nonbinary"),
        )
    ),
    "sexual_orientation": tuple(
        (_pattern(text), frozenset(groups.split()))
        for text, groups in (
            (r"gays?|homosexual(?:s|ity)?|lesbians?|same-sex|coming out|outed|closet(?:ed)?", "gay bisexual queer"),
        )
    ),
    "disability": tuple(
        (_pattern(text), frozenset(groups.split()))
        for text, groups in (
            (r"sign languages?|interpreters?|hearing aids?|videophones?|lip-?reads?|captions?|deafness", "deaf"),
            (r"braille|guide dogs?|white cane|sighted|screen reader", "blind"),
            (r"wheelchairs?|ramps?|crutches|stair ?lift", "mobility disabled chronic"),
            (r"mental (?:illness(?:es)?|health|deterioration)", "mental_illness"),
            (r"insulin|blood sugar|seizures?", "chronic"),
        )
    ),
}


# Countries by the group of their people, a blank written as "_".
_COUNTRIES = r"""
afghan=Afghanistan american=USA|U\.S\.A\.|America argentine=Argentina australian=Australia
austrian=Austria|Vienna bangladeshi=Bangladesh belgian=Belgium brazilian=Brazil british=Britain|England|UK
canadian=Canada chilean=Chile chinese=China|Beijing colombian=Colombia cuban=Cuba danish=Denmark
dutch=Holland|Netherlands egyptian=Egypt english=England ethiopian=Ethiopia finnish=Finland french=France
german=Germany ghanaian=Ghana greek=Greece haitian=Haiti hungarian=Hungary indian=India indonesian=Indonesia
iranian=Iran iraqi=Iraq|Baghdad irish=Ireland israeli=Israel italian=Italy jamaican=Jamaica japanese=Japan
kenyan=Kenya south_korean=Korea lebanese=Lebanon mexican=Mexico moroccan=Morocco nigerian=Nigeria
norwegian=Norway pakistani=Pakistan palestinian=Palestine|Israel\w* peruvian=Peru polish=Poland
portuguese=Portugal romanian=Romania russian=Russia scottish=Scotland somali=Somalia
south_african=South_Africa spanish=Spain swedish=Sweden swiss=Switzerland syrian=Syria thai=Thailand
turkish=Turkey ukrainian=Ukraine vietnamese=Vietnam welsh=Wales filipino=Philippines
"""
COUNTRIES: Mapping[str, re.Pattern[str]] = {
    group: _pattern(names.replace("_", " ")) for group, _, names in (row.partition("=") for row in _COUNTRIES.split())
}

# Nouns that stand after a preposition without an article, and those beside them: *by bus*, *over lunch*, *in summer*.
# Of others one of a pair may (*to town*, *at night*, *in court*) and the other not.
WITHOUT_ARTICLE = {
    "anyone",
    "everyone",
    "someone",
    "money",
    "colour.sg",
    "dialogue.sg",
    "thing.bus.sg",
    "thing.boat.sg",
    "thing.lunch.sg",
    "thing.bicycle.sg",
    "thing.phone.sg",
    "thing.cake.sg",
    "thing.coffee.sg",
    "thing.taxi.sg",
}
