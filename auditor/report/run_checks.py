"""What stands beside the figures of a run: cautions, what was lost, its controls, and what its plan expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from auditor.core.record import Caution, Counts, Plain, RunRecord, part
from auditor.core.record.base import Control, Losses, PositiveControl, Unread
from auditor.core.record.measured import Gold, Probability
from auditor.core.record.rows import ExpectedClaim, ExpectedRows, ExpectedTexts, Power, Range
from auditor.core.shown import cut_off
from auditor.core.verdict import UNFIT, Verdict, verdict
from auditor.measure.rates import MIN_UNITS, MIN_VALUES
from auditor.report import words
from auditor.text import languages

MANY_OTHERS = 0.05  # share of texts in other languages from which on a report warns
LOST = ("unparsed", "refused", "filtered", "failed")
LABELS = 8  # labels that a report lists
EXAMPLE = 60  # characters of an answer that a report quotes

# -- what has to be known before any figure ---------------------------------------------------------------


def banners(record: RunRecord) -> tuple[str, ...]:
    """Sentences over a report; what the status tells already is said once."""
    return tuple(filter(None, [*(_caution(record, one) for one in record.cautions), partial(record), *_others(record)]))


def partial(record: RunRecord) -> str:
    """Why the run is partial, as a sentence; empty for a complete one."""
    if record.status != "partial":
        return ""
    reason = (record.status_reason or "no reason was recorded").rstrip(".")
    nothing = variant(record) or record.stopped_by == "control"
    return f"Partial run: {reason}.{'' if nothing else ' The figures cover what was answered until then.'}"


def cannot_judge(record: RunRecord) -> tuple[str, ...]:
    """Why a run that was asked cannot be judged, in sentences; empty where it can be, or a difference was shown."""
    if record.stopped_by == "control":
        return (partial(record),)
    unfit = [caution for caution in record.cautions if caution.code in UNFIT]
    if not unfit or (made := verdict(record)).state != "cannot be judged":
        return ()
    return tuple(filter(None, (_caution(record, one) for one in unfit))) or (_undecided(made),)


def undecided(record: RunRecord) -> str:
    """Why a run decides nothing, as a sentence: it is partial, or cannot be judged; empty for any other."""
    made = verdict(record)
    if made.state == "cannot be judged":
        return " ".join(cannot_judge(record)) or _undecided(made)
    return partial(record)


def _undecided(made: Verdict) -> str:
    return words.sentence(f"cannot be judged: {'; '.join(made.why)}")


def _caution(record: RunRecord, caution: Caution) -> str:
    model, lost, further = caution.model, "", ""
    unread = record.models[model].unread if model in record.models else None
    nothing = unread is not None and unread.judged_nothing
    if record.stopped_by == "control" or (nothing and caution.code == "control_not_seen"):
        return ""  # the status says so
    if caution.code == "unreadable_answers":
        if unread is None or nothing:
            return ""
        lost, further = losses(unread), offer(unread)
    shown = any(c.verdict == "shown" and c.model == model for c in record.claims or ())
    code = "control_not_seen_but_shown" if shown and caution.code == "control_not_seen" else caution.code
    said = words.named("cautions")[code].format(
        who=f"{model}, {caution.format}" if caution.format else model,
        n=words.count(caution.n),
        of=words.count(caution.of),
        pairs=words.plural(caution.of, "pair"),
        label=f"“{words.visible(caution.label, newlines=False)}”" if caution.label else "the same",
        lost=lost,
    )
    return said + further


def _others(record: RunRecord) -> Iterator[str]:
    canary = record.controls.of("canary")
    for model, drift in canary.parts.items() if canary is not None else ():
        if drift.shift is not None and drift.shift.shifted:
            yield words.text("shifted").format(model=model, p=f"{drift.shift.p_value:.2g}")
    source = record.provenance.seeds
    if (n := source.not_english) and n >= MANY_OTHERS * (source.n or 0):
        texts = words.plural(source.n or 0, "text")
        yield words.text("not_english").format(texts=f"{n:,} of {texts} {words.verb(n, 'does', 'do')}")
    if record.spec.protocol != "default":
        yield " ".join((words.text("protocol").format(protocol=record.spec.protocol), *protocol_limits(record)))


def protocol_limits(record: RunRecord) -> Iterator[str]:
    """Say where a run did less than the paper whose protocol it follows."""
    if record.spec.protocol == "hinter" and record.spec.per_seed is not None:
        yield words.text("protocol_sampled").format(n=record.spec.per_seed)
    families = [family for one in record.tokens for family in one.families]
    enough = {family.name: family.enough for family in families if family.enough is not None}
    if record.spec.protocol == "astraea" and enough and all(family.reason for family in families):
        first, most = min(enough.values()), max(enough.values())
        yield words.text("protocol_few").format(
            values=MIN_VALUES, units=MIN_UNITS, first=f"{first:,}", all=f"{most:,}", n=words.plural(len(enough), "rule")
        )


# -- answers that could not be read -----------------------------------------------------------------------


def quoted(output: str) -> str:
    """The beginning of an answer in one line, in quotation marks; nothing in it acts or looks like a command."""
    line = words.visible(output.strip(), newlines=False)
    if not line:
        return "an empty answer"
    short = line if len(line) <= EXAMPLE else line[: EXAMPLE - 1].rstrip() + "…"
    # A message to the terminal puts "Run: …" on a line of its own; not what a model said.
    return f"“{short}”".replace(": ", ":\u00a0")


def listed(labels: Sequence[str]) -> str:
    """The labels that were expected, the first of them where they are many."""
    left = len(labels) - LABELS
    return ", ".join(labels) if left <= 1 else f"{', '.join(labels[:LABELS])} and {left:,} further labels"


def losses(unread: Unread) -> str:
    """What became of the answers that could not be read, with an example and what was expected."""
    counts = [f"{words.count(unread.lost[key])} {key}" for key in LOST if unread.lost.get(key)]
    example = f"; for example {unread.example}" if unread.example else ""
    return f"{', '.join(counts)}{example}; expected: {unread.expected}{cut_off(unread.cut_off)}"


def reason(model: str, unread: Unread) -> str:
    """Why a run in which ``model`` gave nothing to judge, or too little to ask on, is not complete."""
    if sum(unread.lost.values()) == unread.answers:
        what = f"none of its {words.count(unread.answers)} answers could be read"
    elif stopped := unread.stopped:
        what = f"{stopped[0]} of its first {stopped[1]} answers could not be read"
    else:
        what = f"too few of its {words.count(unread.answers)} answers could be read to judge any variant"
    further = ", so it was not asked further" if unread.stopped else ""
    return f"{model}: {what}{further}. These were {losses(unread)}.{offer(unread)}"


def dropped(skipped: object, repeated: int | None) -> str:
    """Say how many rows of the texts were left out, and why; empty where none was."""
    empty = "without a text" if repeated is not None else "without two different texts"
    parts = [f"{words.plural(skipped, 'row')} {empty}"] if isinstance(skipped, int) and skipped else []
    return ", ".join(
        [*parts, *([f"{words.plural(repeated, 'row')} with the text of an earlier one"] if repeated else [])]
    )


def golds(gold: Gold | None, labels: Sequence[str] = ()) -> str:
    """Say that gold labels name no label of the task, and which do not; empty where all do."""
    if gold is None or not gold.unmapped:
        return ""
    named = words.listing([quoted(label) for label in gold.examples])
    verb = "does" if len(gold.examples) == 1 else "do"
    known = f" Its labels: {listed(labels)}." if labels else ""
    some = f"{words.count(gold.mapped) if gold.mapped else 'None'} of {words.plural(gold.given, 'gold label')}"
    name = words.verb(gold.mapped, "names", "name")
    return f"{some} {name} a label of the task; {named} {verb} not. The accuracy leaves them out.{known}"


def offer(unread: Unread) -> str:
    """The option that makes the answers of a model its labels, as a sentence; empty where they look like none."""
    labels = ",".join(unread.labels)
    return f' If these are its labels, name them all: --labels "{labels}" (and --favourable LABEL).' if labels else ""


def nothing(record: RunRecord, model: str) -> Unread | None:
    """What is known of the answers of ``model``, where they were such that nothing could be judged."""
    unread = record.models[model].unread if model in record.models else None
    return unread if unread is not None and unread.judged_nothing else None


def variant(record: RunRecord) -> str:
    """A variant whose answers show why a model was not asked further, or nothing could be judged; else empty."""
    every = (model.unread for model in record.models.values() if model.unread is not None)
    return next((unread.variant for unread in every if unread.judged_nothing or unread.stopped), "")


def kinds_lost(rows: Iterable[Losses]) -> tuple[str, ...]:
    """The kinds of lost answers: what a provider's filter kept back only where it kept something back."""
    filtered = any(row.filtered for row in rows)
    return tuple(name for name in ("refused", "filtered", "unparsed", "failed") if filtered or name != "filtered")


def lost(counts: Counts) -> str:
    """How many prompts got no answer that counts, of how many that were asked or found in the cache."""
    every = ", ".join(f"{name} {words.count(counts.lost.get(name))}" for name in kinds_lost([counts]))
    asked, cached = counts.fresh, counts.cached or 0
    if asked is None:
        return every
    return (
        f"{every} of {words.count(asked + cached)} ({words.count(asked)} asked, {words.count(cached)} from the cache)"
    )


# -- controls ---------------------------------------------------------------------------------------------


def pairs_said(control: PositiveControl) -> str:
    """Say what came of the pairs of a positive control, on the scale of the claims."""
    pairs = f"{words.count(control.differ)} of {words.plural(control.pairs, 'pair')} answered differently"
    if control.mean is None:
        return pairs
    unit = " log odds" if control.scale == "log_odds" else ""
    limits = f" (95 %: {control.low:+,.2f} to {control.high:+,.2f})" if control.low is not None else ""
    return f"{control.mean:+,.2f}{unit} within pairs{limits}, {pairs}"


def hopeless(model: str, control: PositiveControl) -> str:
    """Say that nothing can be learned of a model that answers everything alike, its positive control included."""
    said = f"“{words.visible(control.answer, newlines=False)}”" if control.answer is not None else "the same"
    return (
        f"{model} cannot be judged: all its {words.count(control.answers)} answers are {said}. It also gave one answer "
        f"to texts that must get different answers (positive control: {pairs_said(control)})."
    )


def to_try(formats: Sequence[str], graded: Sequence[str]) -> str:
    """Say what may help where a model reacts to nothing: other formats, the graded scale, a larger model."""
    other = [f"--formats {name}" for name in formats if name not in graded]
    scale = [f"--formats {name}" for name in formats if name in graded]
    ways = [f"another prompt format ({', '.join(other)})"] if other else []
    ways += [f"the graded scale ({', '.join(scale)})"] if scale else []
    return f"Try {words.listing([*ways, 'a larger model'], 'or')}."


FEW_SEEDS = 6
FEW = "on fewer than six texts"
CONTROLS = {
    "noise_floor": "Same-prompt noise",
    "placebo": "Placebo edits",
    "positive_control": "Positive control",
    "canary": "Same prompts later",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line of the controls: what, for whom, the figure or the reason why there is none."""

    name: str
    scope: str
    result: str
    ran: bool = True
    few: bool = False  # of one attribute set, on fewer than `FEW_SEEDS` seeds


def controls(record: RunRecord) -> Iterator[Line]:
    """One line per control; those that were not run say why."""
    every = record.controls.every
    for key in [*CONTROLS, *sorted(set(every) - set(CONTROLS))]:
        name = CONTROLS.get(key, key.replace("_", " ").capitalize())
        if key in every:
            yield from control(name, "", every[key])
        else:
            yield Line(name=name, scope="", result="not run: the run record holds no result", ran=False)


def control(name: str, scope: str, value: Control) -> Iterator[Line]:
    """One control as lines: a rate, a test, or why it was not run."""
    for key, one in sorted(value.parts.items()):
        yield from control(name, f"{scope}, {key}" if scope else key, one)
    if not value.parts:
        few = value.estimate is not None and ", " in scope and value.estimate.n < FEW_SEEDS
        yield Line(name=name, scope=scope, result=result(value), ran=value.reason is None, few=few)


def result(value: Control | None) -> str:
    """What came of a control, in words."""
    if value is None:
        return "not measured"
    if value.reason is not None:
        return f"not run: {value.reason}"
    if (control := value.positive) is not None:
        return f"{'seen' if control.seen else 'not seen'}: {pairs_said(control)}"
    if value.declared:
        return "not measured: the model is declared deterministic"
    if (rate := value.estimate) is not None:
        return f"{words.interval(rate)} · n = {words.count(rate.n)}" + (f" · {rate.note}" if rate.note else "")
    if (shift := value.shift) is not None:
        prompts, answers = words.plural(shift.prompts, "prompt"), words.plural(shift.answers, "answer")
        seen = "answered differently" if shift.shifted else "no shift seen"
        return f"{seen}: p = {shift.p_value:.2g} ({prompts}, {answers})"
    if value.rate is not None:
        return words.percent(value.rate) + (f" of {words.count(value.n)}" if value.n is not None else "")
    return value.text or "not measured"


# -- what a plan asks, was expected to ask and to show: for reports, frozen plans and ``--dry-run`` ----------


def expectations(expected: Plain | None) -> list[str]:
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
    expected = expectations(record.frozen.expected)
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
