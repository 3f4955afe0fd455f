from __future__ import annotations

import copy
import re
from typing import Any

from auditor.contrib.hinter import paper_figures as shown
from auditor.contrib.hinter.measures import Mutant, figures, measures, records, totals
from auditor.core.record import read


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
    assert figures(found)["both"]["false_positive_share"] == 2 / 6
    unasked = [m if m.valid else mutant(m.id, m.original, m.attributes, None, valid=False) for m in world()]
    assert figures(totals(unasked))["both"]["false_positive_share"] is None


def test_regions_are_the_eight_of_a_venn_diagram() -> None:
    first, second = measures(world())
    assert first.attributes == ("body", "gender")
    assert {key: n for key, n in first.texts.items() if n} == {"second": 1}
    assert second.attributes == ("gender", "race")
    assert {key: n for key, n in second.texts.items() if n} == {"first+joint": 1, "joint": 1, "second": 1}
    assert len(second.texts) == 8
    assert sum(second.texts.values()) == 3  # "w" was not judged


def test_models_add_up() -> None:
    record = records({"a": world(), "b": world()})["hinter_figures"]
    one, both = record["models"]["a"], record["all"]
    assert both["joint"]["errors"] == 2 * one["joint"]["errors"]
    assert both["joint"]["error_rate"] == one["joint"]["error_rate"]
    assert both["hidden"] == 2 * one["hidden"]
    assert "regions" not in both


def run(models: tuple[str, ...] = ("a", "b"), mutants: list[Mutant] | None = None) -> dict[str, Any]:
    mutants = world() if mutants is None else mutants
    return {"spec": {"kind": "classification"}, **records(dict.fromkeys(models, mutants))}


def test_every_figure_is_there_with_its_number() -> None:
    titles = [figure.title for figure in shown.build(read(run()))]
    assert [re.match(r"(Table|Figure) \d+", title).group() for title in titles] == [  # type: ignore[union-attr]
        "Table 9", "Figure 4", "Figure 5", "Figure 7", "Figure 8", "Figure 10", "Figure 11",
    ]  # fmt: skip
    assert shown.build(read({"hinter": {}})) == ()


def test_table_9_has_pairs_models_and_all_of_them() -> None:
    figure = shown.build(read(run()))[0]
    assert figure.lines[0] == ("body + gender", "a", "1", "0 % (0 of 1)", "none")
    assert ("gender + race", "b", "3", "66.7 % (2 of 3)", "50.0 % (1 of 2)") in figure.lines
    assert figure.lines[-1] == ("all pairs", "all models", "8", "50.0 % (4 of 8)", "50.0 % (2 of 4)")
    assert all(shown.ALL not in line for line in shown.build(read(run(("a",))))[0].lines)


def test_figure_8_says_why_there_is_none() -> None:
    unasked = [m for m in world() if m.valid]
    figure = shown.build(read(run(mutants=unasked)))[4]
    assert figure.lines == []
    assert "--test-discarded" in figure.note
    asked = shown.build(read(run()))[4]
    assert ("a", "(a) all mutants", "66.7 % (4 of 6)", "33.3 % (2 of 6)") in asked.lines


def test_figure_11_leaves_out_empty_combinations() -> None:
    lines = shown.build(read(run(("a",))))[6].lines
    assert ("a", "gender + race", "joint only", "33.3 % (1 of 3)") in lines
    assert ("a", "gender + race", "gender + joint only", "33.3 % (1 of 3)") in lines
    assert ("a", "gender + race", "nothing", "0") in lines
    assert len(lines) == 6


def test_both_reports_show_the_figures() -> None:
    from auditor.report.html import HtmlReport
    from auditor.report.terminal import TerminalReport

    record = {"id": "r", "estimates": [], "findings": [], "controls": {}, **copy.deepcopy(run())}
    record["spec"] |= {"protocol": "hinter", "task": "sentiment"}
    page = HtmlReport().render(read(record), None)
    text = TerminalReport(width=120, full=True).render(read(record), None)
    for figure in shown.build(read(record)):
        assert f"HInter, {figure.title}" in text
        assert f"HInter, {figure.title}: " in page.replace("&#39;", "'")
        assert all(cell in text for line in figure.lines for cell in line if cell.endswith(")"))
