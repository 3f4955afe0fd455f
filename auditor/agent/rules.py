"""The default planner: rules, no language model. Equal goals, texts, models and seeds give equal steps.

A pilot on few texts looks where answers change; a fresh run on other texts tests the question; what stays open is asked
again as long as texts and budget last. Each decision names the figures it read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from auditor.agent import figures as measured
from auditor.agent.session import Changed, Session, declared, scan
from auditor.agent.values import Entry, Request, Row
from auditor.core.errors import ConfigError, UserError
from auditor.core.shown import plural, verb
from auditor.measure.claims import MIN_TEXTS
from auditor.perturb import grammar
from auditor.report.words import listing

PILOT_TEXTS, PILOT_SHARE = 40, 0.25
LEAST_JOINT = 30  # texts that name all attributes, or each of them; with fewer, the report says so
FEWEST = 6  # texts of a pilot, however small the budget
FEW_TEXTS = 30  # fewer are not divided into a pilot and a test
LEAST_TEXTS = 12  # fewer leave too little for a claim: six seeds must differ
FRESH_TEXTS = 150
MORE_TEXTS = 600  # of a further run, where a claim is open
WANTED_CHANGED = 12  # seeds on which the answer should change: twice what an exact test needs
NOISY = 0.05
MOST_FRESH = 3
MORE_REPLICATES = 5
OVERHEAD = 1.25  # controls, canaries and the confirmation of hidden changes
SPARE_SHARE = 0.3  # of the fresh texts that stay back for a second look
PILOT = "a pilot on a quarter of the texts at most: it shows where to look, and settles nothing"
NO_PILOT = "too few texts to spend some on a pilot: all of them test what the goal names"


class Next(NamedTuple):
    """The next run, its reason, and the figures behind it."""

    request: Request
    reason: str
    figures: Mapping[str, object]


class Rules:
    """Plans a session by rules; `go` runs it to its end."""

    def __init__(self, session: Session) -> None:
        self.session, self.goal = session, session.record.goal
        self.base = Request(
            purpose="pilot", texts=1, attributes=self.goal.attributes, groups=self.goal.changes, order=self.goal.order
        )
        self.calls_per_text = 0.0
        self.few = ""  # that few texts name all attributes of the goal

    def first(self) -> Request:
        """Plan the pilot, or the test where there are too few texts for both, without asking anything.

        Raises `ConfigError` where the texts cannot be used for these attributes.
        """
        self.base = self._material()
        have = self.session.pool.left
        share = max(min(PILOT_TEXTS, math.ceil(PILOT_SHARE * have)), LEAST_TEXTS)
        request = replace(self.base, texts=PILOT_TEXTS if self.base.grammar else share)
        if have < FEW_TEXTS and not self.base.grammar:
            request = replace(self.base, purpose="fresh", texts=have)
        sized = self.session.dry_run(request)
        self.calls_per_text = OVERHEAD * sized.calls / max(1, sized.texts or request.texts)
        affordable = self._affordable(PILOT_SHARE if request.purpose == "pilot" else 1.0)
        texts = max(min(request.texts, affordable), min(FEWEST, request.texts))
        figures = sized._asdict() | {"calls_per_text": round(self.calls_per_text, 3), "texts_chosen": texts}
        self.session.step("size", "what the pilot would ask, counted before asking", figures=figures)
        return replace(request, texts=texts)

    def go(self) -> str:
        """Run the session, from where it is; return why it ended."""
        session = self.session
        if session.runs:
            self.base = self._material()
        else:
            self._require_budget("--max-calls, --max-cost or --max-seconds")
            first = self.first()
            self._require_budget("--max-seconds")
            session.run(first, PILOT if first.purpose == "pilot" else NO_PILOT)
        pilot, done = session.runs[0], session.runs[-1]
        while not (why := measured.unread(done.figures)) and not session.broke():
            following = self._next(pilot)
            if isinstance(following, str):
                return following + self.few
            try:
                done = session.run(following.request, following.reason, **following.figures)
            except Changed:
                raise
            except UserError:
                return f"run R{len(session.runs)} could not be done; its note says why"
        if done is pilot and why:
            return why
        return session.broke() or why if why else f"the budget ended the session: {session.broke()}"

    def _require_budget(self, options: str) -> None:
        if spare := self.session.broke():
            raise ConfigError(f"The budget leaves no room for a first run: {spare}. Raise {options}.")

    # -- what to work with ----------------------------------------------------------------------------

    def _material(self) -> Request:
        """Return the suite that reaches the attributes of the goal; texts that it cannot change are dropped."""
        session, goal, plain = self.session, self.goal, self.base
        generated, have = replace(plain, suite="grammar", groups=()), len(session.pool.seeds)
        if not have:
            if not self._grammar():
                raise ConfigError(
                    f"The task {session.task.name!r} has neither texts nor a grammar. Give texts with --data FILE."
                )
            session.step("look", "the task brings no texts: cases come from its grammar")
            return generated
        usable = scan(session.plan(plain), session.pool)
        joint = sum(usable.values())
        figures = {"texts": have, "usable": len(usable)}
        if goal.attributes is None or len(goal.attributes) > 1:
            figures["joint"] = joint
        enough = joint >= LEAST_JOINT or (joint >= LEAST_TEXTS and 2 * joint >= have)
        own = session.settings.options.data is not None or session.settings.seeds is not None
        together = goal.order > 1 and joint < LEAST_TEXTS
        if not (own or enough) and (together or len(usable) < LEAST_TEXTS) and self._makes(generated, joint=together):
            reason = f"too few texts name the attributes{' together' * together}: cases come from the grammar"
            session.step("look", reason, figures=figures)
            return generated
        if not usable:
            raise ConfigError(
                f"None of the {plural(have, 'text')} names people by "
                f"{', '.join(goal.attributes or ()) or 'any attribute'}. "
                "Give texts about these people with --data, or ask about others. See: audit list dictionaries"
            )
        session.pool.keep(usable)
        reason = "enough texts name the attributes" if enough else "few texts name the attributes"
        session.step("look", f"{reason}: their words are exchanged", figures=figures)
        if goal.attributes and goal.order > 1 and joint < LEAST_JOINT:
            self.few = (
                f"; {joint} of {plural(have, 'text')} {verb(joint, 'names', 'name')} {listing([*goal.attributes])} "
                "together, and others that do (--data) would tell more"
            )
        return plain

    def _grammar(self) -> Collection[str]:
        """Return the attributes of the task's grammar; none where there is no grammar."""
        name = self.session.task.name
        return grammar.load(name).attributes if name in grammar.available() else ()

    def _makes(self, request: Request, *, joint: bool) -> bool:
        """Return whether the grammar has words for the attributes of the goal, with ``joint`` for all of them."""
        known = self._grammar()
        if not known or (joint and not (self.goal.attributes and set(self.goal.attributes) <= set(known))):
            return False
        try:
            return bool(self.session.dry_run(request).valid)
        except UserError:
            return False

    # -- how much -------------------------------------------------------------------------------------

    def _affordable(self, share: float = 1.0, most: int = FRESH_TEXTS) -> int:
        """Return how many texts ``share`` of what is left pays for."""
        left, (calls, usd, _) = self.session.left(), self.session.budget.spent
        per_text = max(1e-9, self.calls_per_text)
        if left.calls is not None:
            most = min(most, int(share * left.calls / per_text))
        if left.cost_usd is not None and usd and calls:
            most = min(most, int(share * left.cost_usd / (usd / calls * per_text)))
        return most

    def _left(self) -> int:
        """Return how many texts are fresh; a grammar always has some."""
        return MORE_TEXTS if self.base.grammar else self.session.pool.left

    # -- what next ------------------------------------------------------------------------------------

    def _next(self, pilot: Entry) -> Next | str:
        """Return the next run, or why there is none."""
        runs = self.session.runs
        if done := [r for r in runs if r.calls and r.texts]:
            self.calls_per_text = max(r.calls / r.texts for r in done)  # as the runs so far needed them
        fresh = [r for r in runs if r.purpose == "fresh"]
        if not fresh:
            return self._test(pilot)
        unsettled = self._open()
        candidates = [row for row in unsettled if measured.promising(row)]
        if candidates and len(fresh) < MOST_FRESH:
            return self._again(candidates)
        if candidates:
            return "what is open was tested on fresh texts three times; a fourth test would have too low a level"
        if unsettled:
            return (
                "no open attribute set changed more answers than placebo edits; more runs would only narrow intervals"
            )
        return "every attribute set that the goal names is settled"

    def _noise(self) -> float:
        """Return how often identical prompts disagreed at most."""
        return max((r.figures.noise or 0.0 for r in self.session.runs if r.figures), default=0.0)

    def _replicates(self) -> int | None:
        """Return more where identical prompts disagree often; None leaves the tool's own number."""
        return MORE_REPLICATES if self._noise() >= NOISY else None

    def _test(self, pilot: Entry) -> Next | str:
        have = self._left()
        if have < LEAST_TEXTS:
            return (
                f"{plural(have, 'text')} {verb(have, 'is', 'are')} left that no run has asked, too few "
                "to test anything the pilot saw"
            )
        rows = [r for r in (pilot.figures.sets if pilot.figures else ()) if measured.promising(r)]
        rate, wanted = None, have
        reason = "the pilot saw no change beyond placebo edits; fresh texts say how small a rate can be told"
        if rows:
            rate = min(r.seeds_changed / r.seeds for r in rows if r.seeds)
            wanted = math.ceil(WANTED_CHANGED / rate)
            reason = "the pilot saw answers change more often than with placebo edits; fresh texts test it"
        ready = max(LEAST_TEXTS, math.floor((1 - SPARE_SHARE) * have))
        affordable = self._affordable(0.7)
        request = replace(
            self.base,
            purpose="fresh",
            texts=min(max(wanted, PILOT_TEXTS), ready, max(affordable, LEAST_TEXTS)),
            replicates=self._replicates(),
        )
        share = None if rate is None else round(rate, 6)
        return Next(request, reason, self._figures(wanted, have, affordable) | {"share_of_texts_changed": share})

    def _again(self, rows: list[Row]) -> Next | str:
        have, affordable = self._left(), self._affordable(most=MORE_TEXTS)
        if min(have, affordable) < LEAST_TEXTS:
            what = "texts" if have < LEAST_TEXTS else "budget"
            return f"an attribute set is open and changed answers, and the {what} left do not reach for another test"
        # So many texts that six of them should change; fewer could not show anything.
        needed = [math.ceil(MIN_TEXTS * self._per_change(row)) for row in rows]
        reached = [(n, row) for n, row in zip(needed, rows, strict=True) if n <= min(have, affordable)]
        if not reached:
            return (
                f"an attribute set is open and changed answers on few texts: about {min(needed)} more texts are needed "
                f"for six changes, and {min(have, affordable)} can be asked"
            )
        wanted, more = math.ceil(2 * max(n for n, _ in reached)), self._replicates()
        reason = "open attribute sets changed more answers than placebo edits: further fresh texts"
        if more is not None:
            reason += ", each prompt asked more often because identical prompts disagree"
        request = replace(
            self._only({name for _, row in reached for name in row.attributes}),
            purpose="fresh",
            texts=max(LEAST_TEXTS, min(have, affordable, wanted)),
            replicates=more,
            per_seed=8,
        )
        sets = {"open": [row.attributes for _, row in reached]}
        return Next(request, reason, sets | self._figures(wanted, have, affordable))

    def _figures(self, wanted: int, have: int, affordable: int) -> dict[str, object]:
        noise = round(self._noise(), 6)
        return {"texts_wanted": wanted, "texts_left": have, "texts_affordable": affordable, "noise": noise}

    def _per_change(self, row: Row) -> float:
        """Return the texts for each one on which the answer changed, in the run behind ``row``."""
        run = next(r for r in reversed(self.session.runs) if r.figures and row in r.figures.sets)
        return run.texts / row.seeds_changed

    def _only(self, attributes: Collection[str]) -> Request:
        """Return the material for these attributes alone; all of them where the texts choose."""
        if self.goal.attributes is None:
            return self.base
        return replace(
            self.base,
            attributes=tuple(sorted(attributes)),
            order=min(self.goal.order, len(attributes)),
            groups=tuple(g for g in self.base.groups if g.partition(":")[0] in attributes),
        )

    def _open(self) -> list[Row]:
        """Return rows of the last fresh run for sets that are not settled; the declared ones, or all without any."""
        asked = declared(self.session.record)
        return [
            question.row or Row(attributes=question.attributes)
            for question in measured.questions([r for r in self.session.runs if r.figures], asked)
            if question.verdict in ("not_determined", "not_tested") and (question.declared or not asked)
        ]
