"""Text in a normal form, so that names of labels compare the way a person compares them."""

from __future__ import annotations

import re
import unicodedata

# More marks than any script stacks on one letter; see `_few_marks`.
_MARKS = 8
_INVISIBLE = re.compile("[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")
_BREAKS = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f-\x9f]")
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2212", "-"),
        **dict.fromkeys("*`", None),
    }
)
_EDGE_UNDERSCORE = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
_LINE_START = re.compile(r"^[^\S\n]*(?:[#>]+[^\S\n]*)+", re.MULTILINE)
_SPACE = re.compile(r"[^\S\n]+")
_AROUND_BREAK = re.compile(r" ?\n ?")

PUNCTUATION = " \n\t.,;!\"'()[]{}<>\u2026\u3002"


def normalise(text: str) -> str:
    r"""Return case-folded, compatibility-composed text without Markdown marks and invisible characters.

    Full-width letters, no-break spaces, curly quotes and a byte-order mark become their plain forms;
    runs of blanks become one; line breaks stay (as ``\n``). Takes time linear in ``text``.

    Examples
    --------
    >>> normalise("\ufeff**\uff30ositive**")
    'positive'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _few_marks(text))
        text = _INVISIBLE.sub("", text)
    text = _BREAKS.sub("\n", text).translate(_SIGNS)
    text = _CONTROL.sub(" ", text).casefold()
    text = _LINE_START.sub("", _EDGE_UNDERSCORE.sub("", text))
    return _AROUND_BREAK.sub("\n", _SPACE.sub(" ", text)).strip()


def _few_marks(text: str) -> str:
    """At most `_MARKS` combining marks in a row: ordering a long run takes quadratic time."""
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= _MARKS:
            kept.append(character)
    return "".join(kept)


def bare(text: str) -> str:
    """``text`` (already normal) without the punctuation around it; a colon and a question mark stay."""
    return text.strip(PUNCTUATION)
