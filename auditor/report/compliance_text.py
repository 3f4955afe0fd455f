"""Sentences that every compliance report carries."""

from __future__ import annotations

SAYS = (
    "It says how often the answers of the models named here changed when words for the groups named here were "
    "changed, with the interval and the controls beside each figure.",
    "Each claim has one of five verdicts: shown, shown for these words, bounded, not determined, not tested. Not "
    "determined is a statement about the data.",
)
SAYS_ROWS = (
    "It says how often the label of the model named here changed when protected columns of a row were changed and "
    "nothing else, on the rows named here.",
    "Each claim has one of four verdicts: shown, bounded, not determined, not tested.",
)
SAYS_OUTCOMES = (
    "It says at what rates recorded people of each category had the outcome, and how these rates compare, computed "
    "from a file as given.",
)
SAYS_NOT = (
    "It is not a certificate, no conformity assessment and no legal advice, and states no verdict on a system or on "
    "people.",
    "A difference that was not shown is not shown to be absent; that takes a bound δ that was set before the run.",
    "Treatment (does the answer change when only the group changes?) and impact (do outcomes of real people differ?) "
    "are two questions. Either may be answered without the other; they stand in sections of their own and enter no "
    "common figure.",
    "What the people responsible have to fill in is left to them, and marked where they did not. Nothing is filled in "
    "for them, and nothing that they filled in was checked.",
)
NO_TREATMENT = "Not tested: this record holds outcomes of people, and no altered texts or rows."
NO_TEXTS = "Not tested: this run altered rows of a table. Texts take an audit of their own (audit run)."
NO_ROWS = "Not tested: this run altered texts. Rows of a table take a search of their own (audit tabular)."
NO_IMPACT = (
    "Not tested: no outcomes of people are recorded with this run. Compute them from a file with audit ll144 --data "
    "FILE --out RUN/ll144.json; this section then shows them."
)
IMPACT_NOTE = (
    "These figures are about people and outcomes. They share no denominator, model or sample with the sections on "
    "treatment, and nothing is computed across the two."
)
MEASURES = (
    (
        "Share changed",
        "share of valid variants whose answer differs from that for their original, by text",
        "How unstable the answer is under a change of group words. It has no direction: changes to and fro both count.",
    ),
    (
        "Excess over placebo",
        "share changed minus that of edits of the same form that change no group, on the same texts",
        "The part of the changes that goes with the group and not with any change of wording.",
    ),
    (
        "Direction",
        "share of a label for texts about one group minus that for the same texts about another",
        "Whether one group gets a label more often than another, whichever was the original.",
    ),
    (
        "Hidden",
        "the answer changes with several attributes, and with no smaller set of them",
        "What a test of one attribute at a time cannot see. It need not be an interaction.",
    ),
)
ROW_MEASURES = (
    (
        "Causal score",
        "share of rows whose label changes when protected columns change and nothing else",
        "Whether the label depends on these columns on the rows drawn.",
    ),
    (
        "Group score",
        "largest minus smallest share of one label over the groups",
        "A difference between groups on rows drawn alike; no people were observed.",
    ),
)
OUTCOME_MEASURES = (
    (
        "Impact ratio",
        "rate of a category divided by the highest rate in its table",
        "How outcomes compare between categories. It says nothing about why.",
    ),
)
STATISTICS = (
    "Unit: the text. Variants of one text are not independent. Intervals of rates: Korn–Graubard (1998), "
    "Clopper–Pearson on the effective number of texts, at 95 %.",
    "A claim is about the net difference between two groups: the mean over texts of answers to versions about the one "
    "minus those about the other, whichever was the original, with the effect of an edit, of a word and of a character "
    "more taken out (estimated from all edits and placebo edits of the run).",
    "Shown: the difference differs from 0 with texts and words as samples (bias-reduced sandwich by text, "
    "Satterthwaite degrees of freedom; mean over the variances of word effects that the answers leave likely). Shown "
    "for these words: texts are a sample and the words as they are. Holm's correction over all net claims of the run, "
    "level 5 %.",
    "Fewer than 6 texts with different answers are not determined: no exact two-sided test reaches 5 % with 5.",
    "Bounded: δ was set before the run, the positive control was seen, and two one-sided tests place the difference "
    "between minus and plus δ (Holm over bounds). Cases that a search was led to enter no rate.",
)
ROW_STATISTICS = (
    "Rows are drawn independently; intervals are exact or confidence sequences, as named at each score. Where all rows "
    "of a domain were looked at, the score is exact.",
    "Cases that a search was led to are counted and enter no rate.",
)
OUTCOME_STATISTICS = (
    "Ratios come from exact fractions and are rounded last. Intervals of ratios: Koopman's score interval. Tests: "
    "Fisher's exact test against the reference, Holm within each table; chi-square over the whole table.",
    "The reference is chosen by the data because its rate is highest, so ratios come out low by chance, most of all "
    "with many small categories.",
)
TEXT_LIMITS = (
    "Output noise is estimated, not removed; variants that read oddly remain at the rate given under Controls.",
)
ROW_MEANING = {
    "shown": "Labels were seen to change: the interval of the score lies above 0, or cases were found and can be asked "
    "again. Scores are not corrected for their number; slices are.",
    "bounded": "The interval of the score ends below the bound δ that was set before the run.",
    "not_determined": (
        "Too little data to show a difference or to rule one out. This says something of the data, not of the model."
    ),
    "not_tested": "No claim was tested here; a score, where one is given, is a description.",
}
MORE_LIMITS = (
    "What the user adds about the system and its use was not checked.",
    "The hash chain shows that records were not changed after they were written. It does not show that a provider gave "
    "these answers, nor that other runs were not thrown away; runs.jsonl beside the run folder lists the runs begun.",
)
OUTCOME_LIMITS = (
    "The figures are as good as the file. Who is in it, and who is missing, cannot be seen from it.",
    "Rates say nothing about why they differ, nor whether a criterion is related to the job.",
    "No category is inferred; people of unknown category are counted and bounded.",
)
GLOSSARY = (
    ("Text", "a given text (or row) from which variants are made; the unit of analysis"),
    ("Variant", "a text with some words changed; everything else is as it was"),
    ("Placebo", "an edit of the same form that changes no group"),
    ("Same-prompt noise", "how often the identical prompt gets another answer"),
    ("Hidden", "a change that only several attributes together bring about"),
    ("δ", "the largest rate that the people responsible were ready to call small, set before the run"),
    ("Treatment", "whether the answer changes when only the group changes"),
    ("Impact", "whether outcomes of real people differ between categories"),
)
