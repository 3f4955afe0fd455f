"""Agreement: forms that follow from what a reference became, articles, capitals.

Every dependent word of a sentence is a function of one terminal choice, so it is a table: the form for
each terminal. Replacing a terminal then changes its dependents with it ("feel/feels", a/an, "she/he"), and
the edit that does so is of kind ``agreement``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from auditor.perturb.grammar.model import Terminal
from auditor.text.english import article_for, capitalise

_STOP = re.compile(r"(?:[.!?]['\"”’)]*\s+|\n\s*)\Z")


def form_table(
    terminals: Sequence[Terminal], forms: Sequence[str], feature: str, values: Sequence[str]
) -> tuple[str, ...]:
    """The form for each terminal; a terminal without the feature takes the first value.

    >>> they = Terminal(text="the twins", features={"number": "pl"})
    >>> form_table([Terminal(text="Ann"), they], ("feels", "feel"), "number", ("sg", "pl"))
    ('feels', 'feel')
    """
    place = {value: i for i, value in enumerate(values)}
    return tuple(forms[place[t.features.get(feature, values[0])]] for t in terminals)


def article_table(texts: Sequence[str]) -> tuple[str, ...]:
    """*a* or *an* before each of ``texts``."""
    return tuple(article_for(text) for text in texts)


def opens_sentence(before: str) -> bool:
    """Whether a sentence begins after the text ``before``.

    >>> opens_sentence(""), opens_sentence("It ended. "), opens_sentence("Mr ")
    (True, True, False)
    """
    return not before or _STOP.search(before) is not None


def capitals(texts: Sequence[str]) -> tuple[str, ...]:
    """``texts`` as they stand at the beginning of a sentence."""
    return tuple(capitalise(text) for text in texts)
