"""What a plan asks, was expected to ask and to show, in words: for reports, frozen plans and ``--dry-run``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from auditor.core.record import Plain, RunRecord, part
from auditor.core.record.measured import Probability
from auditor.core.record.rows import ExpectedClaim, ExpectedRows, ExpectedTexts, Power, Range
from auditor.report import words
from auditor.text import languages


def lines(expected: Plain | None) -> list[str]:
    """Return sentences about what a plan is expected to ask and to show, as a frozen plan holds it."""
    if not expected:
        return []
    if expected.get("kind") == "rows":
        return _rows(part(expected, ExpectedRows))
    return _texts(part(expected, ExpectedTexts))


def frozen(record: RunRecord) -> list[str]:
    """What the frozen plan of a run expected, and beside it what the run came to; none without a frozen plan."""
    if record.frozen is None:
        return []
    expected = lines(record.frozen.expected)
    if not expected:
        return ["The frozen plan says nothing about the number of cases, nor about the effect that can be seen."]
    counts = record.counts
    made = [(counts.cases, "case", ""), (counts.variants, "variant", ""), (counts.valid, "valid variant", "")]
    if record.tabular is not None:
        made = [(counts.generated, "case", ""), (counts.evaluations, "row asked about", "rows asked about")]
    counted = [words.plural(n, *noun) for n, *noun in made if n is not None]
    came = f"The run had {words.listing([*counted, *filter(None, [words.asked(counts)])])}."
    return ["This was worked out before the run.", *expected, came]


def _texts(expected: ExpectedTexts) -> list[str]:
    out = [
        f"{words.plural(expected.cases, 'case')} of {words.plural(expected.seeds, 'text')}, with "
        f"{words.plural(expected.variants, 'variant')} ({words.count(expected.valid)} valid) and "
        f"{words.plural(expected.placebos, 'placebo variant')}."
    ]
    for name, row in expected.models.items():
        money = f", about {row.cost_usd:.2f} USD" if row.cost_usd else ""
        calls = words.plural(row.calls + row.calls_canary, "call")
        out.append(f"{name}: {calls} for {words.plural(row.prompts, 'prompt')}{money}.")
    return [*out, *filter(None, [expected.left_out]), *reached(expected.power)]


def reached(power: Power) -> list[str]:
    """What the net claims of a plan can show, in lines; the clearest claim of each attribute."""
    if (claims := power.claims) is None:
        return []
    seen = [c for c in claims if c.smallest is not None]
    clearest: dict[str, ExpectedClaim] = {}
    for claim in sorted(seen, key=lambda c: c.smallest or 1.0):
        clearest.setdefault(claim.attribute, claim)
    out = ["This plan can decide nothing from labels: no claim would show a net difference of 30 points."]
    if seen:
        out = [
            f"Smallest net difference shown in {words.percent(power.power, 0)} of runs, in points of the favourable "
            "answers. Last columns: calls about the attribute that show 1, 2 and 5 points (–: no number of texts "
            "does):",
            f"  {'attribute':<13}{'groups':<20}{'texts':>6}{'points':>8}{'1':>10}{'2':>8}{'5':>7}",
        ]
        for claim in (clearest[name] for name in dict.fromkeys(c.attribute for c in claims) if name in clearest):
            calls = [words.count(claim.calls.get(target)) for target in ("0.01", "0.02", "0.05")]
            out.append(
                f"  {claim.attribute[:12]:<13}{' / '.join(claim.groups)[:19]:<20}{claim.texts:>6,}"
                f"{100 * (claim.smallest or 0.0):>8.1f}{calls[0]:>10}{calls[1]:>8}{calls[2]:>7}"
            )
        none = sorted({c.attribute for c in claims} - set(clearest))
        out += [f"Too few texts or words to show 30 points: {words.listing(none)}."] if none else []
    if (about := power.assumed) is not None:
        out.append(
            f"Assumed: half of the answers are favourable, and a neutral edit flips {words.percent(about.flips, 1)} of "
            f"them. Word effects have standard deviation {about.word_sd:g} where texts have 1; {about.draws} draws, "
            "labels alone. Probabilities show smaller "
            "differences; more noise hides larger ones."
        )
    return out


def _rows(expected: ExpectedRows) -> list[str]:
    asked = expected.evaluations
    cases = words.sentence(_range(expected.cases, "case")).rstrip(".")
    out = [
        f"{cases}, each with {words.plural(expected.combinations, 'combination')} of protected values; "
        f"{words.plural(expected.given_rows, 'given row')}."
    ]
    why = f" ({asked.reason})" if asked.reason else ""
    rows = "not known beforehand" if asked.at_most is None else _range(asked, "row")
    out.append(f"Rows that the model is asked about: {rows}{why}.")
    if expected.calls_at_most is not None:
        out.append(f"Calls: at most {words.count(expected.calls_at_most)}, less what the cache has.")
    if expected.limits:
        named = ", ".join(f"{k.replace('_', ' ')} {words.figure(v)}" for k, v in expected.limits.items())
        out.append(f"Limits: {named}.")
    return out


def _range(bounds: Range, noun: str) -> str:
    least, most = bounds.at_least, bounds.at_most
    if most is None:
        return f"at least {words.plural(least or 0, noun)}"
    if least == most:
        return words.plural(most, noun)
    return (
        f"at most {words.plural(most, noun)}" if not least or least == 1 else f"{least:,} to {words.plural(most, noun)}"
    )


def deviations(record: RunRecord) -> Sequence[tuple[str, str, str]]:
    """(what, as planned, as run) of every deviation from the frozen plan."""
    return [(d.what, value(d.planned), value(d.actual)) for d in (record.frozen.deviations if record.frozen else ())]


def value(what: object) -> str:
    """A setting in words; nothing is ``not given``."""
    if what is None or what in ([], {}, ""):
        return "not given"
    if isinstance(what, bool):
        return "yes" if what else "no"
    if isinstance(what, Mapping):
        return ", ".join(f"{k} = {value(v)}" for k, v in sorted(what.items()))
    return ", ".join(map(value, what)) if isinstance(what, list | tuple) else str(what)


# -- what was asked ---------------------------------------------------------------------------------------

RESERVED = "reserved: the highest possible cost of calls that failed or did not report their usage"


def asked(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """What was asked, of whom, and how: (name, value)."""
    spec, counts, source = record.spec, record.counts, record.provenance.seeds
    attributes = spec.attributes or sorted({a for e in record.estimates for a in e.attributes})
    limit = f", first {spec.limit}" if spec.limit else ""
    texts = words.plural(counts.seeds, "text") if counts.seeds is not None else "unknown number"
    spoken = ", ".join(f"{n:,} {languages.title(code)}" for code, n in source.languages.items())
    other = f" ({spoken})" if spoken else ""
    repeats = [f"{m}: {v.replicates}" for m, v in record.models.items() if v.replicates]
    replicates = ", ".join(repeats) or spec.replicates
    edits, person = f"up to {words.plural(spec.order, 'attribute')} at once", words.whose(record)
    if spec.protocol == "hinter":
        edits += ", all occurrences of a word pair, one pair after the other"
    elif spec.suite == "grammar":
        edits += ", terminals of the grammar"
    elif person:
        edits += f", in words about {person}"
    items = [
        ("Task", str(spec.asked)),
        ("Texts", f"{spec.data or source.source or 'embedded texts'}{limit}; {texts} used{other}"),
        ("Models", ", ".join(record.models or spec.models or ["none"])),
        ("Attributes", ", ".join(attributes) or "those that the texts name"),
        ("Edits", edits),
        ("Replicates", str(replicates) if replicates else "3 per prompt; 1 where a model is declared deterministic"),
        ("Formats", ", ".join(f for f in spec.formats if f) or "the task's default"),
        ("Parser", str(spec.parser)),
    ]
    if counts.cost_usd:
        items.append(("Cost", words.cost(counts) + (f": {RESERVED}" if counts.reserved_usd else "")))
    items += [("Protocol", spec.protocol)] if spec.protocol != "default" else []
    items += [("Compared", compared(record.probability))] if record.probability else []
    items += [("Bound δ", f"{100 * spec.delta:g} %")] if spec.delta is not None else []
    return tuple(items)


def compared(section: Probability) -> str:
    """Say what the probability oracle compared, in one line."""
    first = next((row.epsilon for row in section.rows), None)
    less = ", less that of the shares in the occupations," if section.reference == "bls" else ""
    beyond = "" if first is None else f"; a difference{less} of more than {first:g} counts as a change"
    return f"probability of {section.label!r}{beyond}"
