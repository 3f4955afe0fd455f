"""Variants read by two people: the sheet, what is refused, and the figures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from auditor.cli.main import run as command
from auditor.core.errors import ConfigError, DataFileError, UserError
from auditor.core.shown import cell
from auditor.core.types import Case, Check, Edit, Variant
from auditor.run import review
from auditor.run.review import Reading, Row, arm, cohen_kappa, draw, read, sample, take_in
from auditor.store.folder import RunFolder

STARTS = ("=", "+", "-", "@", "He said:\n")


def edit(attribute: str, kind: str = "swap") -> Edit:
    return Edit(
        attribute=attribute,
        kind=kind,  # type: ignore[arg-type]
        source_group="a",
        target_group="b",
        source="x",
        target="y",
        where=(0, 1),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[RunFolder]:
    with RunFolder.create(tmp_path / "runs", {"task": "sentiment"}) as made:
        for i in range(20):
            start = STARTS[i % len(STARTS)]
            variants = [
                Variant(id=f"c{i}.v0", input=f'{start}the "woman", {i}', edits=(edit("gender"),)),
                Variant(id=f"c{i}.v1", input=f"{start}the Swede {i}", edits=(edit("race"),)),
                Variant(id=f"c{i}.v2", input=f"{start}a woman man {i}", edits=(edit("gender"),)),
                Variant(id=f"c{i}.p0", input=f"{start}the guy {i}", edits=(edit("gender", "placebo"),)),
            ]
            checks = {
                v.id: Check(variant_id=v.id, check="t", status="invalid" if v.id.endswith("v2") else "valid")
                for v in variants
            }
            original = Variant(id=f"c{i}.o", input=f"{start}the man {i}")
            made.add_case(Case(id=f"c{i}", suite="t", original=original, variants=tuple(variants)), checks)
        yield made


def table(path: Path) -> list[list[str]]:
    return list(csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline="")))


def fill(path: Path, first: str = "ok", second: str = "ok", **special: tuple[str, str]) -> None:
    """Fill the sheet, some rows (by id with _ for .) otherwise."""
    header, *rows = table(path)
    for row in rows:
        row[3:] = special.get(row[0].replace(".", "_"), (first, second))
    put(path, [header, *rows])


def put(path: Path, rows: list[list[str]], delimiter: str = ",") -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)
    path.write_bytes(out.getvalue().encode("utf-8-sig"))


def test_the_draw_is_proportional_shuffled_and_repeatable() -> None:
    rows = [
        Row(id=f"{i:03}", case=str(i), attributes=a, discarded=False, original="", variant="")
        for i, a in enumerate([("gender",)] * 60 + [("race",)] * 30 + [("gender", "race")] * 10)
    ]
    taken = draw(rows, 10, 7)
    sizes = {a: sum(r.attributes == a for r in taken) for a in {r.attributes for r in rows}}
    assert sizes == {("gender",): 6, ("race",): 3, ("gender", "race"): 1}
    assert taken == draw(reversed(rows), 10, 7)
    assert taken != draw(rows, 10, 8)
    assert [r.id for r in taken] != sorted(r.id for r in taken)
    assert len(draw(rows, 7, 7)) == len({r.id for r in draw(rows, 7, 7)}) == 7
    assert len(draw(rows, 1000, 7)) == 100


def test_the_sheet_holds_valid_variants_and_no_placebos(folder: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "sheet.csv"
    rows = sample(folder, out, n=30)
    assert len(rows) == 30
    assert not any(r.discarded or r.id.endswith(".p0") for r in rows)
    header, *lines = table(out)
    assert tuple(header) == review.COLUMNS
    assert [line[0] for line in lines] == [r.id for r in rows]
    assert all(line[3:] == ["", ""] for line in lines)
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line)
    guide = out.with_suffix(".md").read_text("utf-8")
    assert all(f"`{value}`" in guide for value in review.VALUES)


def test_dropped_ones_are_mixed_in_and_not_marked(folder: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "sheet.csv"
    rows = sample(folder, out, n=15, discarded=True)
    marks = [r.discarded for r in rows]
    assert (marks.count(True), marks.count(False)) == (15, 15)
    assert marks != sorted(marks)
    assert marks != sorted(marks, reverse=True)
    assert "invalid" not in out.read_text("utf-8-sig")
    assert "discarded" not in out.read_text("utf-8-sig") + out.with_suffix(".md").read_text("utf-8")


@pytest.mark.parametrize("text", ["=1+1", "+4+1", "-x", "@you", "  =1", "\t=1", "＝1", "\r=1", "a;=1"])
def test_a_cell_is_never_a_formula(text: str) -> None:
    for part in str(cell(text)).split(";"):
        assert part.strip().startswith(("'", "a", "⟨"))
    assert cell("a=1") == "a=1"


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_round_trip(folder: RunFolder, tmp_path: Path, delimiter: str) -> None:
    out = tmp_path / "sheet.csv"
    rows = [r for r in sample(folder, out, n=40, discarded=True) if not r.discarded]
    assert len(rows) == 40
    answers = {rows[0].id: ("wrong", "wrong"), rows[1].id: (" Wrong", "OK"), rows[2].id: ("unsure", "wrong")}
    fill(out, **{key.replace(".", "_"): value for key, value in answers.items()})
    put(out, table(out), delimiter)
    result = take_in(folder, out)
    assert result == json.loads((folder.path / review.RESULT).read_text("utf-8"))
    assert result["sample"] == {"n": 40, "seed": 7, "discarded": True}
    valid = result["valid"]
    assert (valid["n"], valid["unsure"]) == (40, 1)
    assert valid["wrong_both"]["value"] == pytest.approx(1 / 39)
    assert valid["wrong_any"]["value"] == pytest.approx(2 / 39)
    assert valid["wrong_reader_1"]["n"] == 39
    assert valid["wrong_reader_2"]["value"] == pytest.approx(2 / 40)
    assert valid["wrong_both"]["method"] == "clopper-pearson"
    assert valid["wrong_both"]["note"].startswith("20 of 40")  # two of each text
    assert valid["agreement"] == pytest.approx(38 / 40)
    assert sum(s["wrong_any"] for s in valid["by_attributes"]) == 3
    assert result["discarded"]["kappa"] is None
    assert "'ok'" in result["discarded"]["kappa_reason"]


def test_bad_sheets_name_the_line(folder: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "sheet.csv"
    sample(folder, out, n=20)
    fill(out)
    header, *rows = table(out)
    # Texts may span lines: the line is that of the file, not the number of the row.
    line = 1 + sum(1 + "".join(row).count("\n") for row in rows[:10]) + 1
    row = rows[10]

    def refused(changed: list[str] | None, match: str) -> None:
        put(out, [header, *rows[:10], *([changed] if changed else []), *rows[11:]])
        with pytest.raises(DataFileError, match=match):
            read(folder, out)

    refused([*row[:3], "bad", "ok"], f"line {line}, column reader_1: got 'bad'")
    refused([*row[:4], ""], f"line {line}, column reader_2: the cell is empty")
    refused(row[:4], f"line {line}: 4 fields where the header has 5")
    refused(["", *row[1:]], f"line {line}: the id is missing")
    refused(["c99.v0", *row[1:]], f"line {line}: the id 'c99.v0' is no variant")
    refused([rows[0][0], *row[1:]], rf"line {line}: the id .* stands twice")
    refused([*row[:2], row[2] + " ", *row[3:]], f"line {line}, column variant: the text")
    refused([row[0], row[1].replace("man", "men"), *row[2:]], f"line {line}, column original: the text")
    refused(None, f"{row[0]} are missing")
    put(out, [[*header[:4], "reader_3"], *rows])
    with pytest.raises(DataFileError, match=r"line 1: .*reader_2"):
        read(folder, out)
    out.write_bytes(b"")
    with pytest.raises(DataFileError, match="empty"):
        read(folder, out)
    out.write_bytes(b"id\n\xff")
    with pytest.raises(DataFileError, match=r"line 2: .* is not UTF-8"):
        read(folder, out)
    with pytest.raises(DataFileError, match="no such file"):
        read(folder, tmp_path / "none.csv")


def test_line_ends_and_stripped_apostrophes_are_no_change(folder: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "sheet.csv"
    sample(folder, out, n=20)
    fill(out)
    header, *rows = table(out)
    put(out, [header, *([c.removeprefix("'").replace("\n", "\r\n") for c in row] for row in rows)])
    assert len(read(folder, out)[0]) == 20


def test_long_texts_come_back(tmp_path: Path) -> None:
    long = "She said yes. " * 10_000  # 140,000 characters
    before = csv.field_size_limit(131_072)
    with RunFolder.create(tmp_path / "runs", {"task": "sentiment"}) as made:
        variant = Variant(id="c0.v0", input=long, edits=(edit("gender"),))
        original = Variant(id="c0.o", input=long.replace("She", "He"))
        made.add_case(Case(id="c0", suite="t", original=original, variants=(variant,)), {})
        sheet = tmp_path / "sheet.csv"
        sample(made, sheet)
        text = sheet.read_text("utf-8-sig").rstrip("\n")
        sheet.write_text(text.removesuffix(",,") + ",ok,wrong\n", encoding="utf-8")
        try:
            readings, _ = read(made, sheet)
        finally:
            csv.field_size_limit(before)
    assert [(r.first, r.second) for r in readings] == [("ok", "wrong")]


def test_settings_out_of_range(folder: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "sheet.csv"
    with pytest.raises(ConfigError, match="--n"):
        sample(folder, out, n=0)
    with pytest.raises(ConfigError, match="CSV"):
        sample(folder, tmp_path / "sheet.md")
    out.write_text("filled", encoding="utf-8")
    with pytest.raises(ConfigError, match="exists"):
        sample(folder, out)
    assert out.read_text("utf-8") == "filled"
    with RunFolder.create(tmp_path / "other", {"task": "t"}) as empty, pytest.raises(UserError, match="no variants"):
        sample(empty, tmp_path / "b.csv")


def test_kappa_of_known_tables() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed 0.7, by chance 0.5.
    cells = {("y", "y"): 20, ("y", "n"): 5, ("n", "y"): 10, ("n", "n"): 15}
    pairs = [pair for pair, n in cells.items() for _ in range(n)]
    assert cohen_kappa(pairs)[0] == pytest.approx(0.4)
    assert cohen_kappa([("y", "n"), ("n", "y")]) == (-1.0, "")
    assert cohen_kappa([("y", "y"), ("n", "n")]) == (1.0, "")
    assert cohen_kappa([("y", "y"), ("y", "n")])[0] == 0.0
    value, reason = cohen_kappa([("ok", "ok")] * 5)
    assert value is None
    assert "every row" in reason
    assert cohen_kappa([])[0] is None


def test_kappa_is_that_of_sklearn() -> None:
    from random import Random

    from sklearn.metrics import cohen_kappa_score

    random = Random(3)
    pairs = [(random.choice(review.VALUES), random.choice(review.VALUES)) for _ in range(50)]
    assert cohen_kappa(pairs)[0] == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))


def test_nothing_decided_is_none_not_zero() -> None:
    row = Row(id="a", case="a", attributes=("gender",), discarded=False, original="", variant="")
    found = arm([Reading(row=row, first="unsure", second="ok")])
    assert found.wrong_both is None
    assert found.wrong_reader_1 is None
    assert found.wrong_reader_2 is not None
    assert found.wrong_reader_2.value == 0.0


def test_commands_and_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from auditor import audit
    from auditor.run.result import load
    from auditor.store.integrity import verify_folder

    def answer(text: str) -> str:
        return "positive"

    texts = ["The man liked it.", "My father was happy.", "A woman told her story."]
    made = audit("sentiment", model=answer, data=texts, attributes=["gender"], out=tmp_path / "runs")
    assert made.path is not None
    out = tmp_path / "sheet.csv"
    assert command(["validity", "sample", str(made.path), "--n", "5", "--out", str(out)]) == 0
    fill(out)
    assert command(["validity", "import", str(made.path), str(out)]) == 0
    printed = capsys.readouterr().out
    assert "wrong for both readers" in printed
    assert "undefined" in printed
    result = load(made.path)
    page = result.to_html()  # a terminal tells the first controls alone and names the page for the others
    assert "Human readers" in page
    assert "same value" in page
    assert verify_folder(made.path) == []
    out.write_text("x", encoding="utf-8")
    assert command(["validity", "import", str(made.path), str(out)]) == 2


def test_no_verdict_words() -> None:
    import re

    from auditor.cli import examine

    for module in (review, examine):
        source = Path(module.__file__ or "").read_text("utf-8")
        assert not re.search(r"\b(un)?(fair|biased)\b|\bpass(es|ed)\b|\bcompliant\b", source, re.IGNORECASE)
