"""The default planner: rules, no language model. Equal goals, texts, models and seeds give equal steps.

A pilot on few texts looks where answers change; a fresh run on texts that nobody asked yet tests the question;
what stays open, or looks hidden, is looked at again as long as texts and budget last. Each decision
names the figures it read.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from auditor.agent import reading
from auditor.agent.ledger import Changed
from auditor.agent.request import Request
from auditor.agent.session import LEAST_CALLS, Session
from auditor.core.counting import plural, verb
from auditor.core.errors import ConfigError, UserError
from auditor.measure.claims import MIN_TEXTS

PILOT_TEXTS, PILOT_SHARE = 40, 0.25
LEAST_JOINT = 30  # texts that name all attributes; with fewer, words are inserted
FEWEST = 6  # texts of a pilot, however small the budget
FEW_TEXTS = 30  # fewer are not divided into a pilot and a test
LEAST_TEXTS = 12  # fewer leave too little for a claim: six seeds must differ
FRESH_TEXTS = 150
WANTED_CHANGED = 12  # seeds on which the answer should change: twice what an exact test needs
NOISY = 0.05
MOST_FRESH = 3
MORE_REPLICATES = 5
OVERHEAD = 1.25  # controls, canaries and the confirmation of hidden changes
SPARE_SHARE = 0.3  # of the fresh texts that stay back for a second look


class Rules:
    """Plans a session by rules; `go` runs it to its end."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.goal = session.settings.goal
        self.base: dict[str, Any] = {}
        self.calls_per_text = 0.0

    def first(self) -> Request:
        """Look at the texts, without asking anything, and plan the pilot.

        Raises
        ------
        ConfigError
            Neither the texts nor a grammar can be used for these attributes.
        """
        self.base = self._material()
        request = self._opening()
        sized = self.session.dry_run(request)
        self.calls_per_text = OVERHEAD * sized["calls"] / max(1, sized["texts"] or request.texts)
        affordable = self._affordable(PILOT_SHARE if request.purpose == "pilot" else 1.0)
        texts = max(min(request.texts, affordable), min(FEWEST, request.texts))
        self.session.step(
            "size",
            "what the pilot would ask, counted before asking",
            figures={**sized, "calls_per_text": round(self.calls_per_text, 3), "texts_chosen": texts},
        )
        return dataclasses.replace(request, texts=texts)

    def go(self) -> str:
        """Run the session; returns why it ended."""
        session = self.session
        spare = session.broke()
        if spare and not session.old:
            raise ConfigError(
                f"The budget leaves no room for a first run: {spare}. Raise --max-calls, --max-cost or --max-seconds."
            )
        first = self.first()
        spare = session.broke()
        if spare and not session.old:
            raise ConfigError(f"The budget leaves no room for a first run: {spare}. Raise --max-seconds.")
        pilot = session.run(
            first,
            "a pilot on a quarter of the texts at most: it shows where to look, and settles nothing"
            if first.purpose == "pilot"
            else "too few texts to spend some on a pilot: all of them test what the goal names",
        )
        if why := reading.unread(pilot["figures"]):
            return why
        while not session.broke():
            following = self._next(pilot)
            if isinstance(following, str):
                return following
            request, reason, figures = following
            try:
                done = session.run(request, reason, **figures)
            except Changed:
                raise
            except UserError:
                return f"run R{len(session.runs)} could not be done; its note says why"
            if nothing := reading.unread(done["figures"]):
                return session.broke() or nothing
        return f"the budget ended the session: {session.broke()}"

    # -- what to work with ----------------------------------------------------------------------------

    def _material(self) -> dict[str, Any]:
        """Suite, order and insertions that reach the attributes of the goal."""
        session, goal = self.session, self.goal
        bare: dict[str, Any] = {"attributes": goal.attributes, "order": goal.order, "per_seed": 4}
        if not session.pool.seeds:
            self._require_grammar()
            session.step("look", "the task brings no texts: cases come from its grammar", figures={})
            return {**bare, "suite": "grammar"}
        plain = bare | {"groups": goal.changes}
        request = Request(purpose="pilot", texts=1, **plain)
        found = session.scan(request)
        figures = {"texts": found.texts, "usable": found.usable}
        if goal.order > 1:
            figures["joint"] = found.joint
        if found.joint >= LEAST_JOINT or (found.joint >= LEAST_TEXTS and 2 * found.joint >= found.texts):
            session.scan(request, keep=True)
            session.step(
                "look", "enough texts name the attributes: their words are exchanged", figures=figures
            )
            return plain
        with_words = Request(purpose="pilot", texts=1, insertions=True, **plain)
        wider = session.scan(with_words)
        figures["usable_with_insertions"] = wider.usable
        if goal.order > 1:
            figures["joint_with_insertions"] = wider.joint
        if wider.joint > found.joint:
            session.scan(with_words, keep=True)
            session.step(
                "look",
                "few texts name the attributes: words are also put before person nouns (a man, an old man)",
                figures=figures,
            )
            return {**plain, "insertions": True}
        own = session.settings.data is not None or session.settings.seeds is not None
        generated = Request(purpose="pilot", texts=1, **bare, suite="grammar")
        if not own and found.usable < LEAST_TEXTS and self._has_grammar() and self._makes(generated):
            session.step(
                "look", "too few texts name the attributes: cases come from the grammar", figures=figures
            )
            return {**bare, "suite": "grammar"}
        if not found.usable:
            names = ", ".join(goal.attributes or ()) or "any attribute"
            raise ConfigError(
                f"None of the {plural(found.texts, 'text')} names people by {names}, and no word for it "
                "can be put in. Give "
                "texts about these people with --data, or ask about others. See: audit dictionary list"
            )
        session.scan(request, keep=True)
        session.step("look", "few texts name the attributes, and nothing else reaches them", figures=figures)
        return plain

    def _makes(self, request: Request) -> bool:
        """Whether the grammar has words for the attributes of the goal."""
        try:
            return bool(self.session.dry_run(request)["valid"])
        except UserError:
            return False

    def _has_grammar(self) -> bool:
        from auditor.perturb import grammar

        return self.session.task.name in grammar.available()

    def _require_grammar(self) -> None:
        if not self._has_grammar():
            raise ConfigError(
                f"The task {self.session.task.name!r} has neither texts nor a grammar. Give texts with --data FILE."
            )

    # -- how much -------------------------------------------------------------------------------------

    def _opening(self) -> Request:
        """A pilot; where its texts would be missed, the test itself."""
        have = self.session.pool.left
        if self.base.get("suite") == "grammar":
            return Request(purpose="pilot", texts=PILOT_TEXTS, **self.base)
        if have < FEW_TEXTS:
            return Request(purpose="fresh", texts=have, **self.base)
        texts = max(min(PILOT_TEXTS, math.ceil(PILOT_SHARE * have)), LEAST_TEXTS)
        return Request(purpose="pilot", texts=texts, **self.base)

    def _affordable(self, share: float = 1.0) -> int:
        """Texts that ``share`` of what is left pays for."""
        most = FRESH_TEXTS
        left = self.session.left()
        per_text = max(1e-9, self.calls_per_text)
        if left["calls"] is not None:
            most = min(most, int(share * left["calls"] / per_text))
        if left["cost_usd"] is not None and self.session.spent.usd and self.session.spent.calls:
            each = self.session.spent.usd / self.session.spent.calls
            most = min(most, int(share * left["cost_usd"] / (each * per_text)))
        return most

    def _left(self) -> int:
        """Texts that are fresh; a grammar always has some."""
        return FRESH_TEXTS if self.base.get("suite") == "grammar" else self.session.pool.left

    # -- what next ------------------------------------------------------------------------------------

    def _next(self, pilot: dict[str, Any]) -> tuple[Request, str, dict[str, Any]] | str:
        """The next run with its reason and the figures behind it, or why there is none."""
        runs = self.session.runs
        self._learn()
        fresh = [r for r in runs if r["purpose"] == "fresh"]
        if not fresh:
            return self._test(pilot)
        unsettled = self._open()
        candidates = [row for row in unsettled if reading.promising(row)]
        if candidates and len(fresh) < MOST_FRESH:
            following = self._again(candidates)
            if not isinstance(following, str):
                return following
            why = following
        elif candidates:
            why = (
                "what is open was tested on fresh texts three times; a fourth test would have too low a level"
            )
        elif unsettled:
            why = "no open attribute set changed more answers than placebo edits; more runs would only narrow intervals"
        else:
            why = "every attribute set that the goal names is settled"
        if not any(r["purpose"] == "search" for r in runs) and (hidden := self._hidden()):
            following = self._search(hidden)
            if not isinstance(following, str):
                return following
        return why

    def _learn(self) -> None:
        """Calls per text as the runs so far needed them."""
        done = [r for r in self.session.runs if r["calls"] and r["texts"] and r["purpose"] != "search"]
        if done:
            self.calls_per_text = max(r["calls"] / r["texts"] for r in done)

    def _noise(self) -> float:
        return max((r["figures"]["noise"] or 0.0 for r in self.session.runs if r["figures"]), default=0.0)

    def _replicates(self) -> int | None:
        """More where identical prompts disagree often; None leaves the tool's own number."""
        return MORE_REPLICATES if self._noise() >= NOISY else None

    def _test(self, pilot: dict[str, Any]) -> tuple[Request, str, dict[str, Any]] | str:
        have = self._left()
        if have < LEAST_TEXTS:
            return (
                f"{plural(have, 'text')} {verb(have, 'is', 'are')} left that no run has asked, too few "
                "to test anything the pilot saw"
            )
        rows = [r for r in pilot["figures"]["sets"] if reading.promising(r)]
        if rows:
            rate = min(r["seeds_changed"] / r["seeds"] for r in rows if r["seeds"])
            wanted = math.ceil(WANTED_CHANGED / rate)
            reason = "the pilot saw answers change more often than with placebo edits; fresh texts test it"
        else:
            rate, wanted = None, have
            reason = (
                "the pilot saw no change beyond placebo edits; fresh texts say how small a rate can be told"
            )
        ready = max(LEAST_TEXTS, math.floor((1 - SPARE_SHARE) * have))
        affordable = self._affordable(0.7)
        texts = min(max(wanted, PILOT_TEXTS), ready, max(affordable, LEAST_TEXTS))
        request = Request(purpose="fresh", texts=texts, **self.base | {"replicates": self._replicates()})
        figures = {
            "read": pilot["name"],
            "share_of_seeds_changed": None if rate is None else round(rate, 6),
            "texts_wanted": wanted,
            "texts_left": have,
            "texts_affordable": affordable,
            "noise": round(self._noise(), 6),
        }
        return request, reason, figures

    def _again(self, rows: list[dict[str, Any]]) -> tuple[Request, str, dict[str, Any]] | str:
        have, affordable = self._left(), self._affordable()
        if min(have, affordable) < LEAST_TEXTS:
            what = "texts" if have < LEAST_TEXTS else "budget"
            return f"an attribute set is open and changed answers, and the {what} left do not reach for another test"
        # So many texts that six of them should change; fewer could not show anything.
        needed = {id(row): math.ceil(MIN_TEXTS * self._per_change(row)) for row in rows}
        reached = [row for row in rows if needed[id(row)] <= min(have, affordable)]
        if not reached:
            least = min(needed.values())
            return (
                f"an attribute set is open and changed answers on few texts: some {least} further texts would be "
                f"needed for six changes, and {min(have, affordable)} can be asked"
            )
        names = [row["attributes"] for row in reached]
        together = sorted({name for row in reached for name in row["attributes"]})
        wanted = math.ceil(2 * max(needed[id(row)] for row in reached))
        noisy = self._replicates() is not None
        return (
            Request(
                purpose="fresh",
                texts=max(LEAST_TEXTS, min(have, affordable, wanted)),
                **self._only(together) | {"replicates": self._replicates(), "per_seed": 8},
            ),
            "open attribute sets changed more answers than placebo edits: further fresh texts"
            + (", each prompt asked more often because identical prompts disagree" if noisy else ""),
            {
                "open": names,
                "texts_wanted": wanted,
                "texts_left": have,
                "texts_affordable": affordable,
                "noise": round(self._noise(), 6),
            },
        )

    def _per_change(self, row: dict[str, Any]) -> float:
        """Texts for each one on which the answer changed, in the run behind ``row``."""
        run = next(r for r in reversed(self.session.runs) if r["figures"] and row in r["figures"]["sets"])
        return float(run["texts"] / row["seeds_changed"])

    def _only(self, attributes: list[str]) -> dict[str, Any]:
        """The material for these attributes alone; all of them where the texts choose."""
        if self.goal.attributes is None:
            return self.base
        groups = tuple(g for g in self.base.get("groups", ()) if g.partition(":")[0] in attributes)
        only: dict[str, Any] = {
            "attributes": tuple(attributes),
            "order": min(self.goal.order, len(attributes)),
        }
        return self.base | only | ({"groups": groups} if "groups" in self.base else {})

    def _open(self) -> list[dict[str, Any]]:
        """Rows of the last fresh run for sets that are not settled; the declared ones, or all without any."""
        from auditor.agent import judge

        entries = judge.questions([r for r in self.session.runs if r["figures"]], self.session.declared())
        return [
            entry["row"] or _empty(entry)
            for entry in entries
            if entry["verdict"] not in ("shown", "shown_for_words", "bounded")
            and (entry["declared"] or not self.session.declared())
        ]

    def _hidden(self) -> list[list[str]]:
        """Attribute sets with hidden changes in a run that looked at them."""
        found = {
            tuple(row["attributes"])
            for run in self.session.runs
            if run["figures"]
            for row in run["figures"]["sets"]
            if row["hidden"] and len(row["attributes"]) > 1
        }
        return [list(names) for names in sorted(found)]

    def _search(self, hidden: list[list[str]]) -> tuple[Request, str, dict[str, Any]] | str:
        strategy = "adaptive" if adaptive() and self.base.get("suite") != "grammar" else "exhaustive"
        together = sorted({name for names in hidden for name in names})
        seen = max(self.session.pool.used, LEAST_TEXTS)
        base = self._only(together) | {"attributes": tuple(together), "order": min(4, max(2, len(together)))}
        grammar = base.get("suite") == "grammar"
        per_text = 2 * self.calls_per_text
        left = self.session.left()["calls"]
        most = FRESH_TEXTS if left is None else int(0.4 * left / max(1e-9, per_text))
        texts = min(seen, most, PILOT_TEXTS)
        if texts < 1 or (left is not None and left < 2 * LEAST_CALLS):
            return "hidden changes were seen, and the budget does not reach for a search among them"
        return (
            Request(
                purpose="pilot" if grammar else "search",
                texts=texts,
                **base | {"strategy": strategy, "per_seed": 16},
            ),
            "hidden changes were seen: texts that were asked before are searched for more of them, with more words "
            "for each; the search shows where, and settles nothing",
            {"hidden_in": hidden, "calls_left": left},
        )


def _empty(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "attributes": entry["attributes"], "rate": None, "seeds": 0, "seeds_changed": 0, "placebo": None, "hidden": 0,
    }  # fmt: skip


def adaptive() -> bool:
    """Whether this version has a suite that searches adaptively."""
    from importlib.util import find_spec

    return find_spec("auditor.contrib.adaptive.suite") is not None
