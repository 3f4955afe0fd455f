"""What every report shows, worked out once: columns, rows, directions, controls, sentences.

The record is read leniently: what a run did not measure is missing, and is shown as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auditor.render import controls, generation, pairs, performance, scores, tokens, words
from auditor.render.controls import LOSSES, Control
from auditor.render.generation import Generation

Data = Mapping[str, Any]
Steps = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subject:
    """One column of the comparison: a model, in one prompt format."""

    model: str
    format: str
    name: str  # what the column is called


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """What one subject did in one row. Estimates are plain data or None."""

    rate: Data | None
    noise: Data | None  # an estimate, {"declared": True}, or {"status": "not_tested", …}
    verdict: str
    hidden: Data | None  # share of judged joint variants that are hidden
    claim: Data | None
    placebo: Data | None = None  # how often edits that change no group changed the answer

    @property
    def noise_text(self) -> str:
        """The same-prompt noise in words."""
        return noise_text(self.noise)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One attribute set, one direction or one kind of edit, with one cell per subject."""

    label: str
    attributes: tuple[str, ...]
    steps: Steps
    seeds: int | None
    valid: int | None
    discarded: int | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """One run as reports show it."""

    record: Data
    title: str
    noun: str  # what the task's answers are called
    banners: tuple[str, ...]
    asked: tuple[tuple[str, str], ...]
    answer: tuple[tuple[str, str], ...]  # (subject, what it did)
    subjects: tuple[Subject, ...]
    rows: tuple[Row, ...]
    directions: tuple[Row, ...]
    n_directions: int
    kinds: tuple[Row, ...]
    hidden: tuple[Data, ...]
    violations: tuple[Data, ...]
    controls: tuple[Control, ...]
    answers: tuple[Data, ...]  # answers_by_group, those that lost some
    complete: tuple[Data, ...]  # answers_by_group, those that lost none
    paper: tuple[tuple[str, ...], ...]  # the paper's own counting, one line per model and pair
    performance: performance.Performance | None
    tokens: tokens.Tokens | None
    generation: Generation | None
    free: tuple[Generation, ...]  # amounts and texts
    commands: tuple[tuple[str, str], ...]

    @property
    def few(self) -> tuple[Row, ...]:
        """Attribute sets judged on fewer than `MIN_SEEDS` seeds: listed apart, where others have more."""
        return split(self.rows)[1]

    @property
    def main(self) -> tuple[Row, ...]:
        """All other attribute sets."""
        return split(self.rows)[0]

    @property
    def none_hidden(self) -> str:
        """What stands where there is no hidden finding."""
        if self.paper:
            return "This protocol records no findings; its hidden share stands with the paper's own counting."
        return "None was recorded. That is a statement about the variants asked, not about others."


MAX_DIRECTIONS = 10
MIN_SEEDS = 6  # with fewer, no exact test by seed can come out below 0.05
FEW_SEEDS = 10  # a direction with fewer is not ranked where others have more


def build(record: Data) -> View:
    """Work out everything that does not need the cases themselves."""
    subjects = _subjects(record)
    rates = [e for e in record.get("estimates", ()) if e["name"] == "violation_rate"]
    sets = _rows(record, subjects, (e for e in rates if not e.get("directions") and not e.get("kind")))
    directions = _rows(record, subjects, (e for e in rates if e.get("directions")))
    kinds = _rows(record, subjects, (e for e in rates if e.get("kind") and not e.get("directions")))
    enough = [r for r in directions if (r.seeds or 0) >= FEW_SEEDS]
    ranked = sorted(enough or directions, key=lambda r: (-_top(r), r.label))
    findings = record.get("findings", ())
    by_group = (record.get("controls") or {}).get("answers_by_group") or ()
    noun = words.outcome_noun(_kind(record))
    hidden = tuple(sorted((f for f in findings if f["kind"] == "hidden"), key=_rank))
    names = {(s.model, s.format): s.name for s in subjects}
    rows = tuple(sorted(sets, key=lambda r: (not r.attributes, len(r.attributes), r.attributes)))
    return View(
        record=record,
        title=f"Bias test report: {record.get('spec', {}).get('task', 'unnamed task')}",
        noun=noun,
        banners=_banners(record),
        asked=_asked(record),
        answer=tuple(_answer(record, subjects, rows, hidden, noun)),
        subjects=subjects,
        rows=rows,
        directions=tuple(ranked[:MAX_DIRECTIONS]),
        n_directions=len(directions),
        kinds=kinds,
        hidden=hidden,
        violations=tuple(sorted((f for f in findings if f["kind"] == "violation"), key=_rank)),
        controls=tuple(controls.lines(record)),
        answers=tuple(a for a in by_group if any(a.get(k) for k in LOSSES)),
        complete=tuple(a for a in by_group if not any(a.get(k) for k in LOSSES)),
        paper=tuple(controls.paper(record)),
        performance=performance.build(record, names, noun),
        tokens=tokens.build(record, names),
        generation=generation.build(record, names),
        free=tuple(filter(None, (scores.build(record, names), pairs.build(record, names)))),
        commands=_commands(record, hidden, findings),
    )


def split(rows: Sequence[Row]) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Part rows into those of at least `MIN_SEEDS` seeds and the others; few others stay where they are."""
    few = tuple(r for r in rows if r.attributes and (r.seeds or 0) < MIN_SEEDS)
    if len(few) < 2 or not any(r.attributes and r not in few for r in rows):
        return tuple(rows), ()
    return tuple(r for r in rows if r not in few), few


def noise_text(noise: Data | None) -> str:
    """Put a noise floor into words."""
    if noise is None:
        return "not measured"
    if noise.get("declared"):
        return "none (deterministic)"
    if words.is_estimate(noise):
        return words.interval(noise)
    return str(noise.get("reason") or "not measured")


def steps_of(value: Iterable[Sequence[str]] | None) -> Steps:
    """Directions as hashable triples."""
    return tuple((str(a), str(s), str(t)) for a, s, t in value or ())


_RANK = {"shown": 0, "bounded": 2, "not_determined": 1, "not_tested": 3}


def _rank(finding: Data) -> tuple[int, str, str]:
    return _RANK.get(finding.get("verdict", ""), 4), str(finding.get("model", "")), str(finding["id"])


def _top(row: Row) -> float:
    """Rank by the lower end of the interval: one seed of one is no strong sign."""
    return max((float(c.rate["low"]) for c in row.cells if c.rate), default=-1.0)


def _kind(record: Data) -> str:
    if record.get("spec", {}).get("oracle") == "probability":
        return "score"  # what is compared, whatever the task answers with
    for place in (record.get("spec", {}), record.get("provenance", {})):
        for key in ("kind", "task_kind"):
            if isinstance(place.get(key), str):
                return str(place[key])
    return {"sentiment": "classification", "hiring": "decision"}.get(
        str(record.get("spec", {}).get("task")), ""
    )


def _subjects(record: Data) -> tuple[Subject, ...]:
    pairs: dict[tuple[str, str], None] = {}
    for entry in record.get("estimates", ()):
        if entry.get("model") and entry["name"] == "violation_rate":
            pairs[entry["model"], entry.get("format") or ""] = None
    asked = list(record.get("models", {})) or list(record.get("spec", {}).get("models", ()))
    for model in asked:
        if not any(m == model for m, _ in pairs):
            pairs[model, ""] = None
    order = {model: i for i, model in enumerate(asked)}
    several = {m for m, _ in pairs if sum(other == m for other, _ in pairs) > 1}
    return tuple(
        Subject(model=m, format=f, name=f"{m}, {f}" if m in several and f else m)
        for m, f in sorted(pairs, key=lambda p: (order.get(p[0], len(order)), p))
    )


def _rows(record: Data, subjects: Sequence[Subject], entries: Iterable[Data]) -> tuple[Row, ...]:
    groups: dict[tuple[tuple[str, ...], Steps, str], dict[tuple[str, str], Data]] = {}
    for entry in entries:
        key = (
            tuple(entry.get("attributes") or ()),
            steps_of(entry.get("directions")),
            entry.get("kind") or "",
        )
        groups.setdefault(key, {})[entry.get("model") or "", entry.get("format") or ""] = entry["estimate"]
    out = []
    for (attributes, steps, kind), by_subject in groups.items():
        cells = tuple(
            _cell(record, s, attributes, steps, kind, by_subject.get((s.model, s.format))) for s in subjects
        )
        valid, discarded = (None, None) if steps or kind else _validity(record, attributes)
        label = words.direction(steps) if steps else words.attributes(attributes)
        out.append(
            Row(
                label=f"{label}, {KINDS.get(kind, kind)}" if kind else label,
                attributes=attributes,
                steps=steps,
                seeds=max((int(e["n"]) for e in by_subject.values()), default=None),
                valid=valid,
                discarded=discarded,
                cells=cells,
            )
        )
    return tuple(out)


KINDS = {
    "swap": "group for group",
    "marking": "group named where none was",
    "insertion": "word inserted",
    "placebo": "placebo",
    "mixed": "both at once",
}


def _cell(
    record: Data, subject: Subject, attributes: tuple[str, ...], steps: Steps, kind: str, rate: Data | None
) -> Cell:
    claim = None
    if not kind:
        claim = next(
            (
                f
                for f in record.get("findings", ())
                if f["kind"] == "claim"
                and not str(f.get("code", "")).startswith("REF")
                and f["model"] == subject.model
                and f.get("format", "") in ("", subject.format)
                and tuple(f["attributes"]) == attributes
                and steps_of(f.get("directions")) == steps
            ),
            None,
        )
    hidden = None if steps or kind else find(record, "hidden_rate", subject, attributes)
    verdict = str(claim["verdict"]) if claim else "not_tested"
    noise = (claim or {}).get("noise") or _noise(record, subject, attributes)
    placebo = None if steps or kind else find(record, "placebo_rate", subject, attributes)
    return Cell(rate=rate, noise=noise, verdict=verdict, hidden=hidden, claim=claim, placebo=placebo)


def find(record: Data, name: str, subject: Subject, attributes: tuple[str, ...]) -> Data | None:
    """Find the estimate ``name`` of one subject for one attribute set, without direction or kind."""
    for e in record.get("estimates", ()):
        if (
            e["name"] == name
            and e.get("model", "") in ("", subject.model)
            and (e.get("format") or "") in ("", subject.format)
            and tuple(e.get("attributes") or ()) == attributes
            and not e.get("directions")
            and not e.get("kind")
        ):
            estimate: Data = e["estimate"]
            return estimate
    return None


def _noise(record: Data, subject: Subject, attributes: tuple[str, ...]) -> Data | None:
    floors = (record.get("controls") or {}).get("noise_floor") or {}
    if isinstance(floors.get(subject.model), Mapping) and floors[subject.model].get("declared"):
        declared: Data = floors[subject.model]
        return declared
    own = find(record, "noise_floor", subject, attributes) or find(record, "noise_floor", subject, ())
    if own is not None:
        return own
    floor = floors.get(subject.model) or (floors if floors.get("status") == "not_tested" else None)
    return floor if isinstance(floor, Mapping) else None


def _validity(record: Data, attributes: tuple[str, ...]) -> tuple[int | None, int | None]:
    for e in record.get("estimates", ()):
        same = (
            tuple(e.get("attributes") or ()) == attributes and not e.get("directions") and not e.get("kind")
        )
        if e["name"] == "valid_share" and same and e["estimate"].get("n_variants") is not None:
            made = int(e["estimate"]["n_variants"])
            valid = round(float(e["estimate"]["value"]) * made)
            return valid, made - valid
    if not attributes:
        counts = record.get("counts", {})
        return counts.get("valid"), counts.get("discarded")
    return None, None


def _banners(record: Data) -> tuple[str, ...]:
    out = []
    if record.get("status") == "partial":
        reason = (record.get("status_reason") or "no reason was recorded").rstrip(".")
        out.append(f"Partial run: {reason}. The figures cover what was answered until then.")
    for model, drift in ((record.get("controls") or {}).get("canary") or {}).items():
        if isinstance(drift, Mapping) and drift.get("shifted"):
            out.append(
                f"{model} answered the same prompts differently at the start and at the end of the run "
                f"(permutation test, p = {drift['p_value']:.2g}): it may have been changed meanwhile, and its "
                "figures mix both."
            )
    spec = record.get("spec", {})
    if spec.get("protocol", "default") != "default":
        out.append(
            f"Protocol {spec['protocol']}: counted as the paper's own code counts, without the controls of "
            "the default protocol, so that figures can be laid beside published ones."
        )
    return tuple(out)


def _asked(record: Data) -> tuple[tuple[str, str], ...]:
    spec, counts = record.get("spec", {}), record.get("counts", {})
    attributes = spec.get("attributes") or sorted(
        {a for e in record.get("estimates", ()) for a in e["attributes"]}
    )
    limit = f", first {spec['limit']}" if spec.get("limit") else ""
    seeds = (
        words.plural(int(counts["seeds"]), "seed text")
        if counts.get("seeds") is not None
        else "unknown number"
    )
    repeats = [f"{m}: {v['replicates']}" for m, v in record.get("models", {}).items() if v.get("replicates")]
    replicates = ", ".join(repeats) or spec.get("replicates")
    formats = [f for f in spec.get("formats") or () if f]
    items = [
        ("Task", str(spec.get("task", "not recorded"))),
        ("Texts", f"{_source(record)}{limit}; {seeds} used"),
        ("Models", ", ".join(record.get("models") or spec.get("models") or ["none"])),
        ("Attributes", ", ".join(attributes) or "those that the texts name"),
        ("Edits", _edits(spec)),
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
        items.append(("Compared", generation.compared(record["probability"])))
    if spec.get("delta") is not None:
        items.append(("Bound δ", f"{100 * float(spec['delta']):g} %"))
    return tuple(items)


def _source(record: Data) -> str:
    """Where the texts come from, in words."""
    if record.get("spec", {}).get("data"):
        return str(record["spec"]["data"])
    source = ((record.get("provenance") or {}).get("seeds") or {}).get("source")
    return str(source) if source else "embedded seed texts"


def _edits(spec: Data) -> str:
    order = f"up to {words.plural(int(spec.get('order', 1)), 'attribute')} at once"
    if spec.get("protocol") == "hinter":
        return f"{order}, all occurrences of a word pair, one pair after the other"
    if spec.get("suite") == "grammar":
        return f"{order}, terminals of the grammar"
    return f"{order}, scope {spec.get('scope', '–')}"


def _answer(
    record: Data, subjects: Sequence[Subject], rows: Sequence[Row], hidden: Sequence[Data], noun: str
) -> Iterable[tuple[str, str]]:
    """Yield two sentences of measured facts per subject."""
    for i, subject in enumerate(subjects):
        judged = [(r, r.cells[i]) for r in rows if r.attributes and r.cells[i].rate]
        if not judged:
            yield subject.name, "gave too few answers: no rate could be measured."
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
                f"changed its {noun} most clearly with {row.label}: in "
                f"{words.interval(cell.rate)} of the variants of {_seeds(cell.rate)}; "
                f"same-prompt noise: {cell.noise_text}"
                + (f"; placebo edits changed it in {words.interval(cell.placebo)}." if cell.placebo else ".")
            )
        sets = words.plural(len(judged), "attribute set")
        if not any(c.claim for _, c in judged):
            none = f"No claim was tested for its {sets}."
            if record.get("scores") or record.get("generation_pairs"):
                none = "Its claims are about differences between groups: see their table."
            yield subject.name, f"{first} {none}"
            continue
        claims = f"for {words.listing(shown)}" if shown else "for none"
        found = words.plural(n, "hidden finding") if n else "no hidden finding"
        were = "was" if n < 2 else "were"
        yield subject.name, f"{first} Of {sets}, a difference was shown {claims}; {found} {were} recorded."


def _commands(record: Data, hidden: Sequence[Data], findings: Sequence[Data]) -> tuple[tuple[str, str], ...]:
    run = str(record.get("id", "RUN"))
    first = (hidden or findings or [{"id": "ID"}])[0]["id"]
    out = [
        (f"audit show {run} {first}", "one finding: its prompts and every answer"),
        (f"audit replay {run} {first} --replicates 5", "ask it again"),
        (f"audit report {run} --format html", "the full report, one file"),
    ]
    if record.get("status") == "partial":
        out.insert(0, (f"audit resume {run}", "go on; no answered prompt is asked twice"))
    return tuple(out)


def _seeds(rate: Data) -> str:
    return words.plural(int(rate["n"]), "seed")
