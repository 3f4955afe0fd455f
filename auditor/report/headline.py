"""What stands first in a report: what has to be known, what was asked, two sentences of facts; and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.report import cautions, unread, words
from auditor.report.rows import Row, Subject, split

Data = Mapping[str, Any]
MANY_OTHERS = 0.05  # share of texts in other languages from which on a report warns


def banners(record: Data) -> tuple[str, ...]:
    """What has to be known before any figure."""
    out = cautions.banners(record)
    if record.get("status") == "partial":
        reason = (record.get("status_reason") or "no reason was recorded").rstrip(".")
        figures = "" if unread.variant(record) else " The figures cover what was answered until then."
        out.append(f"Partial run: {reason}.{figures}")
    for model, drift in ((record.get("controls") or {}).get("canary") or {}).items():
        if isinstance(drift, Mapping) and drift.get("shifted"):
            out.append(
                f"{model} answered the same prompts differently at the start and at the end of the run "
                f"(permutation test, p = {drift['p_value']:.2g}): it may have been changed meanwhile, and its "
                "figures mix both."
            )
    out += filter(None, [_language(record)])
    spec = record.get("spec", {})
    if spec.get("protocol", "default") != "default":
        out.append(
            f"Protocol {spec['protocol']}: counted as the paper's own code counts, without the controls of "
            "the default protocol, so that figures can be laid beside published ones."
        )
    return tuple(out)


def asked(record: Data) -> tuple[tuple[str, str], ...]:
    """What was asked, of whom, and how: (name, value)."""
    spec, counts = record.get("spec", {}), record.get("counts", {})
    attributes = spec.get("attributes") or sorted(
        {a for e in record.get("estimates", ()) for a in e["attributes"]}
    )
    limit = f", first {spec['limit']}" if spec.get("limit") else ""
    seeds = (
        words.plural(int(counts["seeds"]), "text") if counts.get("seeds") is not None else "unknown number"
    )
    repeats = [f"{m}: {v['replicates']}" for m, v in record.get("models", {}).items() if v.get("replicates")]
    replicates = ", ".join(repeats) or spec.get("replicates")
    formats = [f for f in spec.get("formats") or () if f]
    items = [
        ("Task", str(spec.get("task", "not recorded"))),
        ("Texts", f"{_source(record)}{limit}; {seeds} used{_not_english(record)}"),
        ("Models", ", ".join(record.get("models") or spec.get("models") or ["none"])),
        ("Attributes", ", ".join(attributes) or "those that the texts name"),
        ("Edits", _edits(record)),
        (
            "Replicates",
            str(replicates) if replicates else "3 per prompt; 1 where a model is declared deterministic",
        ),
        ("Formats", ", ".join(formats) if formats else "the task's default"),
        ("Parser", str(spec.get("parser", "not recorded"))),
    ]
    if spec.get("protocol", "default") != "default":
        items.append(("Protocol", str(spec["protocol"])))
    if record.get("probability"):
        items.append(("Compared", compared(record["probability"])))
    if spec.get("delta") is not None:
        items.append(("Bound δ", f"{100 * float(spec['delta']):g} %"))
    return tuple(items)


def _not_english(record: Data) -> str:
    """How many texts do not look like English, where there are some."""
    n = ((record.get("provenance") or {}).get("seeds") or {}).get("not_english")
    return f", {n:,} that {'does' if n == 1 else 'do'} not look like English" if n else ""


def _language(record: Data) -> str:
    """A warning where many texts do not look like English."""
    told = (record.get("provenance") or {}).get("seeds") or {}
    n, texts = told.get("not_english") or 0, told.get("n") or 0
    if not n or n < MANY_OTHERS * texts:
        return ""
    return (
        f"{n:,} of {words.plural(texts, 'text')} {'does' if n == 1 else 'do'} not look like English, by script and "
        "function words. Group terms, grammar check and placebo edits are made for English: what such texts give is "
        "not to be relied on."
    )


def _source(record: Data) -> str:
    """Where the texts come from, in words."""
    if record.get("spec", {}).get("data"):
        return str(record["spec"]["data"])
    source = ((record.get("provenance") or {}).get("seeds") or {}).get("source")
    return str(source) if source else "embedded texts"


def _edits(record: Data) -> str:
    spec, person = record.get("spec", {}), words.whose(record)
    order = f"up to {words.plural(int(spec.get('order', 1)), 'attribute')} at once"
    if spec.get("protocol") == "hinter":
        return f"{order}, all occurrences of a word pair, one pair after the other"
    if spec.get("suite") == "grammar":
        return f"{order}, terminals of the grammar"
    return f"{order}, scope {spec.get('scope', '–')}" + (f", in words about {person}" if person else "")


def answer(
    record: Data, subjects: Sequence[Subject], rows: Sequence[Row], hidden: Sequence[Data], noun: str
) -> Iterable[tuple[str, str]]:
    """Yield two sentences of measured facts per subject."""
    for i, subject in enumerate(subjects):
        judged = [(r, r.cells[i]) for r in rows if r.attributes and r.cells[i].rate]
        if not judged:
            yield subject.name, f"{_why_no_rate(record, subject.model)}, so no rate could be measured."
            continue
        # The lower end of the interval: a rate of a few seeds is no headline.
        row, cell = max(
            judged,
            key=lambda rc: (
                (float(rc[1].rate["low"]), float(rc[1].rate["value"])) if rc[1].rate else (0.0, 0.0),
                rc[0].label,
            ),
        )
        assert cell.rate is not None
        shown = [r.label for r, c in judged if c.verdict == "shown"]
        n = sum(f["model"] == subject.model and f.get("format", "") in ("", subject.format) for f in hidden)
        if all(float(c.rate["value"]) == 0 for _, c in judged if c.rate):
            kept = split([r for r, _ in judged])[0]
            highest = max(float(c.rate["high"]) for r, c in judged if c.rate and r in kept)
            first = (
                f"changed its {noun} in none of the variants judged; the intervals reach up to "
                f"{words.percent(highest, 0 if highest >= 0.2 else 1)}."
            )
        else:
            first = (
                f"changed its {noun} most often with {row.label}, in {words.interval(cell.rate)} of the variants of "
                f"{words.plural(int(cell.rate['n']), 'text')}; the same prompt again: {cell.noise_text}"
                + (f"; placebo edits changed it in {words.interval(cell.placebo)}." if cell.placebo else ".")
            )
        sets = words.plural(len(judged), "attribute set")
        if not any(c.claim for _, c in judged):
            none = f"No claim was tested for its {sets}."
            if record.get("scores") or record.get("generation_pairs"):
                none = "Its claims are about differences between groups: see their table."
            yield subject.name, f"{first} {none}"
            continue
        few = sum(c.verdict == "not_tested" for _, c in judged)
        tested = words.plural(len(judged) - few, "comparison")
        claims = f"A difference was shown in {len(shown)} of {tested}: {words.listing(shown)}"
        if not shown:
            claims = f"No difference was shown in {tested}"
        claims += f"; {few} had too few texts" if few else ""
        found = words.plural(n, "hidden finding") if n else "no hidden finding"
        about = ("", ", about one text,")[n] if n < 2 else ", each about one text,"
        told = f"{found}{about} {'was' if n < 2 else 'were'} recorded."
        yield subject.name, f"{first} {claims}. {words.sentence(told)}"


def commands(record: Data, hidden: Sequence[Data], findings: Sequence[Data]) -> tuple[tuple[str, str], ...]:
    """What to do next: (command, what it gives); nothing where no run folder was written."""
    if record.get("id") == "in-memory":
        return ()
    run = words.run_name(record)
    out = [(f"audit report {run} --format html", "the full report, one file")]
    with_example = [f for f in (*hidden, *findings) if f.get("exemplars")]
    if unread.variant(record):
        out.insert(0, (show_unread(record), "a prompt and the answers that could not be read"))
        return tuple(out)
    if with_example:
        first = min(with_example, key=lambda f: f.get("verdict") != "shown")["id"]
        out[:0] = [
            (f"audit show {run} {first}", "one finding: its prompts and every answer"),
            (f"audit replay {run} {first} --replicates 5", "ask it again"),
        ]
    if record.get("status") == "partial":
        out.insert(0, (f"audit resume {run}{raised(record)}", "go on; no answered prompt is asked twice"))
    return tuple(out)


RAISED = {"max_calls": 100, "max_cost": 1.0}  # what is proposed where the limit was 0


def raised(record: Data) -> str:
    """The option that lets a run go on which a limit ended: twice that limit; empty where none is in the way.

    Examples
    --------
    >>> raised({"stopped_by": "max_calls", "spec": {"max_calls": 500}})
    ' --max-calls 1000'
    """
    name = record.get("stopped_by")
    if name not in RAISED:  # seconds are counted anew
        return ""
    limit = record["spec"].get(name)
    return f" --{name.replace('_', '-')} {2 * limit or RAISED[name]:.12g}" if limit is not None else ""


def show_unread(record: Data) -> str:
    """The command that shows answers which could not be read; empty where each model gave some that could."""
    variant = unread.variant(record)
    return f"audit show {words.run_name(record)} {variant}" if variant else ""


def _why_no_rate(record: Data, model: str) -> str:
    """Why there is no rate of a model: nothing could be read, nothing valid could be asked, or too little came."""
    told, counts = unread.nothing(record, model), record.get("counts", {})
    if told is not None:
        return f"gave no answer that could be read ({unread.losses(told)})"
    if counts.get("valid") == 0 and record.get("status") != "partial":
        made = counts.get("variants") or 0
        if not made:
            return "was asked about no variant: none could be made"
        all_ = "the only one" if made == 1 else f"all {made:,}"
        was = "was" if made == 1 else "were"
        return f"was asked about no variant: {all_} that {was} made {was} discarded by the validity check"
    return "gave too few answers"


def compared(section: Data) -> str:
    """Say what the probability oracle compared, in one line.

    Examples
    --------
    >>> compared({"label": "his", "reference": "equal", "rows": [{"epsilon": 0.05}]})
    "probability of 'his'; a difference of more than 0.05 counts as a change"
    """
    first = next((row["epsilon"] for row in section.get("rows", ())), None)
    less = ", less that of the shares in the occupations," if section.get("reference") == "bls" else ""
    beyond = "" if first is None else f"; a difference{less} of more than {first:g} counts as a change"
    return f"probability of {section['label']!r}{beyond}"
