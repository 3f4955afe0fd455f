"""Words, figures and symbols that all reports share; see docs/extending/wording.md.

Everything a reader sees says what was measured. Text from models and files passes through `visible`
before it is laid out anywhere. Sentences that hang on no figure are in ``auditor/embedded/report.yaml``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import PurePath

import msgspec

from auditor.core import reading
from auditor.core.record import RunRecord
from auditor.core.record.base import Counts
from auditor.core.record.measured import Bounds
from auditor.core.shown import encodable as encodable
from auditor.core.shown import is_utf8 as is_utf8
from auditor.core.shown import plural as plural
from auditor.core.shown import quoted as quoted
from auditor.core.shown import verb as verb
from auditor.core.shown import visible as visible
from auditor.core.types import AFTER_STOPPING, Estimate, Finding

DEFAULT_OUT = "reports"  # where commands look for a run by its name
SYMBOLS = {"shown": "▲", "bounded": "●", "not_determined": "?", "not_tested": "–"}
VERDICTS = {"shown": "shown", "bounded": "bounded", "not_determined": "not determined", "not_tested": "not tested"}
NOUNS = {"classification": "label", "multilabel": "label", "decision": "decision", "score": "score"}
RANK = {"shown": 0, "not_determined": 1, "bounded": 2, "not_tested": 3}  # what is told first


@cache
def _embedded() -> dict[str, object]:
    return msgspec.convert(reading.load_yaml(reading.shipped("embedded", "report.yaml")), dict[str, object])


def text(name: str) -> str:
    """A paragraph of ``report.yaml``."""
    return str(_embedded()[name])


def lines(name: str) -> tuple[str, ...]:
    """A list of sentences of ``report.yaml``."""
    return msgspec.convert(_embedded()[name], tuple[str, ...])


def named(name: str) -> dict[str, str]:
    """Texts of ``report.yaml`` by what they are about."""
    return msgspec.convert(_embedded()[name], dict[str, str])


def rows(name: str) -> tuple[tuple[str, ...], ...]:
    """The rows of a table of ``report.yaml``."""
    return msgspec.convert(_embedded()[name], tuple[tuple[str, ...], ...])


def number(value: float | None, spec: str = ".2g") -> str:
    """A number formatted by ``spec``, ``–`` where there is none."""
    return "–" if value is None else format(value, spec)


def count(n: int | None) -> str:
    """Write a count with thousands marked, ``–`` where there is none: ``12,304``."""
    return number(n, ",")


def p_value(p: float | None) -> str:
    """Two significant digits, never 0."""
    return "<0.0001" if p is not None and p < 0.0001 else number(p)


def span(value: float, low: float | None, high: float | None, spec: str, *, scale: float = 1, unit: str = "") -> str:
    """A signed number with its interval, where it has one, and minus signs: ``−3.1 points (−5.2 to −1.0)``."""
    between = "" if low is None or high is None else f" ({scale * low:{spec}} to {scale * high:{spec}})"
    return f"{scale * value:{spec}}{unit}{between}".replace("-", "−")


def asked(counts: Counts) -> str:
    """How much was asked: calls, or conversations and the calls within them; empty where nobody counted."""
    calls = "" if counts.calls is None else plural(counts.calls, "call")
    return f"{plural(counts.asked or 0, 'conversation')} ({calls})" if counts.conversations else calls


def cost(counts: Counts) -> str:
    """What the calls cost, and how much of it is reserved; empty where they cost nothing or no one counted."""
    usd, reserved = counts.cost_usd, counts.reserved_usd
    if not usd:
        return "cost not known" if usd is None and counts.calls is not None else ""
    return f"USD {usd:,.2f}" + (f" ({usd - reserved:,.4f} measured, {reserved:,.4f} reserved)" if reserved else "")


def figure(value: float) -> str:
    """Write a number to its last digit, with thousands marked; large ones get no power of ten."""
    return f"{value:,.12g}"


def _number(share: float, decimals: int) -> str:
    """``share`` in percent; an exact 0 or 1 prints bare, anything else never rounds to them."""
    if share in (0, 1):
        return str(round(100 * share))
    for digits in range(decimals, 4):
        text = f"{100 * share:.{digits}f}"
        if 0 < float(text) < 100:
            return text
    return "<0.001" if share < 0.5 else ">99.999"


def _bound(share: float, decimals: int) -> str:
    """One end of an interval: what rounds to an end of the scale without being there says so."""
    text, step = f"{100 * share:.{decimals}f}", f"{10.0**-decimals:g}"
    if share > 0 and float(text) == 0:
        return f"<{step}"
    if share < 1 and float(text) == 100:
        return f">{100 - 10.0**-decimals:g}"
    return _number(share, decimals)


def percent(share: float | None, decimals: int = 1) -> str:
    """Write a share in [0, 1] as a percentage, or ``not measured``."""
    return "not measured" if share is None else f"{_number(share, decimals)} %"


def interval(estimate: Estimate | Bounds | None, *, level: bool = False) -> str:
    """Value and interval; as many digits as the interval supports."""
    if estimate is None:
        return "not measured"
    value, low, high = estimate.value, estimate.low, estimate.high
    width = high - low
    decimals = 0 if width >= 0.2 else 1 if width >= 0.004 else 2
    of = estimate.level if isinstance(estimate, Estimate) else None
    named = f"{confidence(of)}: " if level else ""
    return f"{percent(value, decimals)} ({named}{_bound(low, decimals)}–{_bound(high, decimals)} %)"


def rate_text(estimate: Estimate) -> str:
    """A score of rows with its interval; an exact one says so."""
    if estimate.method.startswith("enumeration"):
        return f"{percent(estimate.value, 2)} (exact)"
    if estimate.method == AFTER_STOPPING:
        return f"{percent(estimate.value, 2)} (no valid interval)"
    return interval(estimate, level=True)


def glue(text: str) -> str:
    """Keep a figure and its ``%`` on one line, with a space that does not break."""
    return re.sub(r"(?<=\d) (?=%)", "\u00a0", text)


def verdict(name: str, *, symbol: bool = True) -> str:
    """``▲ shown`` and its like; an unknown name stands as it is."""
    word = VERDICTS.get(name, name)
    return f"{SYMBOLS.get(name, '·')} {word}" if symbol else word


def finding_verdict(finding: Finding, *, symbol: bool = True) -> str:
    """The verdict of a finding; a hidden one is about one text, and what is shown is shown for that."""
    text = verdict(finding.verdict, symbol=symbol)
    return f"{text} for its text" if (finding.kind, finding.verdict) == ("hidden", "shown") else text


def attributes(names: Sequence[str]) -> str:
    """``gender``, ``gender + race``; ``all attributes`` for the empty set."""
    return " + ".join(names) if names else "all attributes"


def whose(record: RunRecord) -> str:
    """Whose words the edits of a run change, as ``the applicant``; empty where they are anybody's."""
    people = record.provenance.people
    return str(people.subject or "the person judged") if people.who == "subject" else ""


def direction(steps: Iterable[Sequence[str]]) -> str:
    """``gender: men → women + race: white → Black``."""
    return " + ".join(f"{a}: {group(source)} → {group(target)}" for a, source, target in steps)


def group(name: str) -> str:
    """Write a group's key as a name: ``trans female`` for ``trans_female``."""
    return name.replace("_", " ")


def sentence(text: str) -> str:
    """Begin with a capital letter and end with a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}" if text else ""


def listing(items: Sequence[str], last: str = "and") -> str:
    """Join: ``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def places(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What each model in a format is called: the format is named only where a model has several."""
    known = list(dict.fromkeys(pairs))
    formats = Counter(model for model, _ in known)
    return {(m, f): f"{m}, {f}" if formats[m] > 1 and f else m for m, f in known}


def noun(record: RunRecord) -> str:
    """What the answers of a run are called, by the kind of its task; of probabilities what is compared is a score."""
    return "score" if record.spec.oracle == "probability" else NOUNS.get(record.spec.kind, "answer")


def run_name(record: RunRecord) -> str:
    """What a command calls the run: its id in the default folder, elsewhere its path, quoted where a shell needs it."""
    name, out = record.id or "RUN", record.spec.out or DEFAULT_OUT
    return name if PurePath(out) == PurePath(DEFAULT_OUT) else quoted(str(PurePath(out) / name))


def confidence(level: float | None) -> str:
    """``95 %`` for 0.95."""
    return "95 %" if level is None else f"{100 * level:g} %"
