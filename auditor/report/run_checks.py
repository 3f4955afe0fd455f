"""What has to be known beside the figures of a run: cautions first, then its controls, and what was lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from auditor.core.record import Caution, Counts, RunRecord
from auditor.core.record.base import Control, Losses, PositiveControl, Unread
from auditor.core.record.measured import Gold
from auditor.core.shown import cut_off
from auditor.core.verdict import UNFIT, Verdict, verdict
from auditor.measure.rates import MIN_UNITS, MIN_VALUES
from auditor.report import words

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
    families = [family for part in record.tokens for family in part.families]
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
    for key, part in sorted(value.parts.items()):
        yield from control(name, f"{scope}, {key}" if scope else key, part)
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
