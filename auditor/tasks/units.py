"""Amounts with a unit: currency signs, periods, thousands, and what makes an amount one of another unit.

English wording only. A unit is written as in a task file: ``USD/year``, ``points``; the part before the slash
may be the code of a currency, the part behind it a period.
"""

from __future__ import annotations

import re

_CURRENCIES = {
    "USD": r"us ?\$|\$ ?us|usd|\$|u\.?s\.? dollars?|dollars?",
    "EUR": r"€|eur\b|euros?",
    "GBP": r"£|gbp|pounds?(?: sterling)?",
    "JPY": r"¥|jpy|yen",
    "INR": r"₹|inr|rupees?",
    "CHF": r"chf|swiss francs?",
    "CAD": r"ca?\$|cad|canadian dollars?",
    "AUD": r"au?\$|aud|australian dollars?",
}
_PERIODS = {
    "hour": r"(?:per|an?|each|every|/) ?(?:hour|hr|h)\b|hourly",
    "day": r"(?:per|an?|each|every|/) ?day\b|daily",
    "week": r"(?:per|an?|each|every|/) ?(?:week|wk)\b|weekly",
    "month": r"(?:per|an?|each|every|/) ?(?:month|mo)\b|monthly",
    "year": r"(?:per|an?|each|every|/) ?(?:year|annum|yr)\b|yearly|annually|annual|p\.? ?a\b",
}
_ANY_CURRENCY = "|".join(
    # Longer spellings first: "us$" before "$".
    sorted((p for form in _CURRENCIES.values() for p in form.split("|")), key=len, reverse=True)
)
_ANY_PERIOD = "|".join(_PERIODS.values())
_BEFORE = re.compile(rf"(?<![\w$€£¥₹])({_ANY_CURRENCY}) ?$")
_BEHIND = re.compile(rf" ?({_ANY_CURRENCY})?(?:[ ,(]{{0,2}}({_ANY_PERIOD}))?")
_THOUSANDS = re.compile(r"(?<![\w.,])((?:\d{1,3}(?:,\d{3})+|\d{1,9})(?:\.\d{1,3})?) ?k(?!\w)")
_RANGE = re.compile(
    rf"\d ?k? ?(?:{_ANY_CURRENCY})? ?(?:-|\u2010|\u2013|\u2014|to|and|or|through) ?(?:{_ANY_CURRENCY})? ?\d"
)


def currency_of(unit: str) -> str:
    """The code of the currency that ``unit`` counts in; empty where it is none.

    Examples
    --------
    >>> currency_of("USD/year"), currency_of("points")
    ('USD', '')
    """
    code = unit.partition("/")[0].strip().upper()
    return code if code in _CURRENCIES else ""


def thousands(plain: str, unit: str) -> str:
    """Write "85k" as 85000 where the unit is a currency; leave all else as it is.

    Examples
    --------
    >>> thousands("$85k or so", "USD/year"), thousands("85k", "points")
    ('$85000 or so', '85k')
    """
    if not currency_of(unit):
        return plain
    return _THOUSANDS.sub(lambda m: f"{float(m.group(1).replace(',', '')) * 1000:.10g}", plain)


def is_range(plain: str) -> bool:
    """Whether two numbers stand in ``plain`` as the ends of a range.

    Examples
    --------
    >>> is_range("80,000-90,000"), is_range("between $80k and $90k"), is_range("80,000")
    (True, True, False)
    """
    return _RANGE.search(plain) is not None


def bare_amount(line: str, unit: str) -> str:
    """The figure of a line that holds an amount and nothing else, its currency and period taken off.

    Examples
    --------
    >>> bare_amount("$85,000 per year", "USD/year"), bare_amount("$85,000 per month", "USD/year")
    ('85,000', '$85,000 per month')
    """
    if not unit:
        return line
    found = re.search(r"\d[\d,]*(?:\.\d+)?", line)
    if found is None or problem(line, found.start(), found.end(), unit):
        return line
    before, behind = _BEFORE.search(line[: found.start()]), _BEHIND.match(line, found.end())
    start = found.start() if before is None else before.start()
    end = found.end() if behind is None else behind.end()
    return found.group() if not line[:start].strip() and not line[end:].strip(" .)") else line


def problem(plain: str, start: int, end: int, unit: str) -> str:
    """Why the number at ``[start, end)`` is no amount of ``unit``; empty where nothing speaks against it.

    Parameters
    ----------
    plain : str
        In normal form, lower case.
    start, end : int
        Where the number stands.
    unit : str
        Of the task; empty: nothing is checked.

    Examples
    --------
    >>> problem("$7,000 per month", 1, 6, "USD/year")
    'is an amount per month, not per year'
    >>> problem("€70,000", 1, 7, "USD/year")
    'is an amount in EUR, not in USD'
    """
    if not unit:
        return ""
    wanted, _, period = unit.partition("/")
    wanted, period = currency_of(wanted), period.strip().lower()
    before, behind = _BEFORE.search(plain[:start]), _BEHIND.match(plain, end)
    for sign in (before and before.group(1), behind and behind.group(1)):
        if wanted and sign and not re.fullmatch(_CURRENCIES[wanted], sign):
            code = next(c for c, form in _CURRENCIES.items() if re.fullmatch(form, sign))
            return f"is an amount in {code}, not in {wanted}"
    every = behind and behind.group(2)
    if period in _PERIODS and every and not re.fullmatch(_PERIODS[period], every):
        other = next(name for name, form in _PERIODS.items() if re.fullmatch(form, every))
        return f"is an amount per {other}, not per {period}"
    return ""
