"""What a report proposes to look at: the example of a claim, and the commands to go on with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from auditor.core.record import Claim, RunRecord
from auditor.report import cards, run_checks, words


def following(record: RunRecord, example: Example | None) -> Iterator[tuple[str, str]]:
    """Yield (command, what it gives), the example of the first screen first; nothing where no run folder exists."""
    if record.id == "in-memory":
        return
    run, unread = words.run_name(record), run_checks.variant(record)
    if record.status == "partial" and not unread:
        yield f"audit resume {run}{raised(record)}", "go on; no answered prompt is asked twice"
    first = min((f for f in record.findings if f.exemplars), key=lambda f: f.verdict != "shown", default=None)
    if example is not None:
        several = words.plural(example.more + 1, "clearest text").removeprefix("1 ")
        yield f"audit show {run} {example.finding_id or example.variant_id}", f"read the {several}"
    elif unread:
        yield f"audit show {run} {unread}", "read a prompt and the answers that could not be read"
    elif first is not None and first.verdict == "shown":
        yield f"audit show {run} {first.id}", "read one finding: its prompts and every answer"
    elif first is not None:
        yield f"audit show {run} {first.exemplars[0]}", "read one text with its prompts and every answer"
    shown = any(c.verdict == "shown" and c.family == "net" for c in record.claims or ())
    if shown and any(model.style == "chat" for model in record.models.values()):
        yield f"audit mitigate {run}", "try a blinded prompt"
    yield f"audit report {run} --full", "see all that was measured"
    yield f"audit report {run} --format html", "write the full report, one file"


def raised(record: RunRecord) -> str:
    """Return the option that lets a run go on which a limit ended: twice that limit; "" where none is in the way."""
    # Seconds are counted anew. Where the limit was 0, the second figure is proposed.
    limits = {"max_calls": (record.spec.max_calls, 100), "max_cost": (record.spec.max_cost, 1.0)}
    if record.stopped_by == "control":
        return " --anyway"
    if record.spec.until_decided:  # its looks were planned with the limit
        return ""
    reason = record.status_reason or ""  # runs over rows name the limit there alone
    name = record.stopped_by or next((n for n in limits if f"(--{n.replace('_', '-')})" in reason), "")
    limit, other = limits.get(name, (None, 0))
    return f" --{name.replace('_', '-')} {2 * limit or other:.12g}" if limit is not None else ""


@dataclass(frozen=True, slots=True)
class Example(cards.Brief):
    """One variant with its answers."""

    finding_id: str  # that shows more like it; empty where no finding holds it
    more: int  # further examples of that finding


def example(record: RunRecord, evidence: object, claim: Claim) -> Example | None:
    """Return the first variant of a claim, the clearest first, whose label or score changed."""
    place = record.claims.index(claim) if evidence is not None and record.claims else -1
    own = next((f for f in record.findings if f.claim == place), None)
    shown = own.exemplars if own is not None else ()
    for variant_id in dict.fromkeys((*shown, *claim.examples) if place >= 0 else ()):
        made = cards.brief(evidence, variant_id, claim.model, claim.format)
        if made is not None and made.before != made.after:
            more = len(set(shown) - {variant_id})
            plain = (made.variant_id, made.text, made.before, made.after)
            return Example(*plain, finding_id=own.id if own is not None else "", more=more)
    return None
