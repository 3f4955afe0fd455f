from __future__ import annotations

import copy
from typing import Any

from auditor.contrib.hinter import paper_figures as shown
from auditor.contrib.hinter.measures import Mutant, measures, records, totals
from auditor.core.record import read
from auditor.report.document import Table


def mutant(
    name: str,
    text: str,
    attributes: tuple[str, ...],
    error: bool | None = False,
    *,
    valid: bool = True,
    parts: tuple[str, ...] = (),
) -> Mutant:
    return Mutant(id=name, original=text, attributes=attributes, valid=valid, error=error, parts=parts)


def world() -> list[Mutant]:
    """Two pairs that share an attribute: the text "x" and its gender mutant stand in both."""
    return [
        mutant("x.g", "x", ("gender",), True),
        mutant("x.r", "x", ("race",)),
        mutant("x.b", "x", ("body",)),
        mutant("x.gr", "x", ("gender", "race"), True, parts=("x.g", "x.r")),
        mutant("x.bg", "x", ("body", "gender"), parts=("x.b", "x.g")),
        mutant("y.g", "y", ("gender",)),
        mutant("y.r", "y", ("race",)),
        mutant("y.gr", "y", ("gender", "race"), True, parts=("y.g", "y.r")),
        mutant("z.g", "z", ("gender",), True, valid=False),
        mutant("z.r", "z", ("race",), True),
        mutant("z.gr", "z", ("gender", "race"), False, parts=("z.g", "z.r")),
        mutant("z.gr2", "z", ("gender", "race"), True, valid=False, parts=("z.g", "z.r")),
        mutant("w.r", "w", ("race",), None),
        mutant("w.gr", "w", ("gender", "race"), None, parts=("w.r",)),
    ]


def test_totals_count_a_text_and_an_atomic_mutant_once_over_all_pairs() -> None:
    found = totals(world())
    assert (found.joint.generated, found.joint.valid, found.joint.discarded) == (6, 5, 1)
    assert (found.joint.tested, found.joint.errors, found.joint.originals) == (4, 2, 3)
    assert found.joint.originals_with_error == 2
    assert (found.atomic.generated, found.atomic.tested, found.atomic.errors) == (8, 6, 2)
    assert (found.atomic.originals, found.atomic.originals_with_error) == (3, 2)
    # By pairs, the text x would count twice.
    assert sum(one.joint.originals for one in measures(world())) == 4
    assert found.hidden == 1
    assert (found.joint_only, found.joint_with_atomic) == (1, 1)
    assert (found.atomic_only, found.atomic_with_joint) == (1, 1)


def test_discarded_mutants_are_counted_apart() -> None:
    found = totals(world())
    assert (found.joint.discarded_tested, found.joint.discarded_errors) == (1, 1)
    assert (found.atomic.discarded_tested, found.atomic.discarded_errors) == (1, 1)
    assert found.both.discarded_errors == 2


def test_models_add_up() -> None:
    record = records({"a": world(), "b": world()})["hinter_figures"]
    one, both = record["models"]["a"], record["all"]
    assert both["joint"]["errors"] == 2 * one["joint"]["errors"]
    assert both["hidden"] == 2 * one["hidden"]


def run(models: tuple[str, ...] = ("a", "b"), mutants: list[Mutant] | None = None) -> dict[str, Any]:
    mutants = world() if mutants is None else mutants
    return {"spec": {"kind": "classification"}, **records(dict.fromkeys(models, mutants))}


def test_the_tables_have_the_papers_figures() -> None:
    pairs, orders, alone = shown.blocks(read(run()))
    assert all(isinstance(one, Table) for one in (pairs, orders, alone))
    assert pairs.lines[0] == ("body + gender", "a", "1", "0 % (0 of 1)", "none")
    assert ("gender + race", "b", "3", "66.7 % (2 of 3)", "50.0 % (1 of 2)") in pairs.lines
    assert pairs.lines[-1] == ("all pairs", "all models", "8", "50.0 % (4 of 8)", "50.0 % (2 of 4)")
    assert shown.ALL not in str(list(shown.blocks(read(run(("a",))))))
    kept, changed, texts, discarded = orders.lines[0][2:]
    assert (kept, changed, texts) == ("83.3 % (5 of 6)", "50.0 % (2 of 4)", "66.7 % (2 of 3)")
    assert discarded == "33.3 % (1 of 3)"
    assert alone.lines[0] == ("a", "joint", "50.0 % (1 of 2)", "50.0 % (1 of 2)")
    unasked = [m for m in world() if m.valid]
    assert "not asked" in str(list(shown.blocks(read(run(mutants=unasked)))))


def test_both_reports_show_the_figures() -> None:
    from auditor.report.html import HtmlReport
    from auditor.report.terminal import TerminalReport

    record = {"id": "r", "estimates": [], "findings": [], "controls": {}, **copy.deepcopy(run())}
    record["spec"] |= {"protocol": "hinter", "task": "sentiment"}
    assert "HInter, Figure 10" in HtmlReport().render(read(record), None)
    assert "HInter, Figure 10" in TerminalReport(width=120, full=True).render(read(record), None)
