"""A series of runs: a change is found within three looks, and nothing is found where nothing changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from auditor import audit
from auditor.cli import main as cli
from auditor.measure.drift import Watch, e_value, moved, p_value
from auditor.run.watch import watch


def dates(
    rng: np.random.Generator, n: int, *, texts: int, shift_at: int | None = None, shift: float = 0.05
) -> list[dict[str, float]]:
    """Differences of labels between two versions of each text: most have none, some wobble at each date."""
    base = rng.choice([-1.0, 0.0, 1.0], size=texts, p=[0.06, 0.88, 0.06])
    out = []
    for date in range(n):
        values = base.copy()
        if shift_at is not None and date >= shift_at:
            values[: round(shift * texts)] -= 1.0
        wobble = rng.random(texts) < 0.02
        values[wobble] = rng.choice([-1.0, 0.0, 1.0], size=int(wobble.sum()))
        out.append({f"t{i}": float(v) for i, v in enumerate(values)})
    return out


def looks(values: list[dict[str, float]], figures: int = 3) -> list[int]:
    """The dates at which a change is found."""
    watcher = Watch(figures)
    return [n for n, one in enumerate(values) if watcher.look(one).changed]


def test_a_hundred_looks_without_a_change() -> None:
    found = [looks(dates(np.random.default_rng(seed), 101, texts=120)) for seed in range(3)]
    assert sum(map(len, found)) <= 1


@pytest.mark.parametrize("quiet", [2, 10])
def test_a_shift_of_five_points_is_found_within_three_looks(quiet: int) -> None:
    found = []
    for seed in range(10):
        values = dates(np.random.default_rng(seed), quiet + 3, texts=400, shift_at=quiet)
        found.append(looks(values))
    assert all(min(one, default=0) >= quiet for one in found if one)
    assert sum(bool(one) for one in found) >= 9


def test_nothing_is_found_where_every_answer_is_the_same() -> None:
    same = dates(np.random.default_rng(1), 1, texts=50)[0]
    watcher = Watch()
    seen = [watcher.look(same) for _ in range(30)]
    assert {look.p_value for look in seen[1:]} == {1.0}
    assert max(look.capital for look in seen) <= 1.0


def test_p_values_are_valid_and_e_values_pay_one_on_the_average() -> None:
    rng = np.random.default_rng(4)
    found = []
    for _ in range(300):
        values = rng.random((4, 25)) < rng.random(25)
        found.append(p_value(values[:3].astype(float), values[3].astype(float), rng, draws=199))
    for level in (0.05, 0.2):
        assert np.mean(np.array(found) <= level) <= level + 3 * (level / 300) ** 0.5
    grid = (np.arange(200_000) + 0.5) / 200_000
    assert np.mean([e_value(float(p)) for p in grid]) <= 1.0
    assert e_value(0.5) < 1 < e_value(0.01)


def test_after_a_change_it_begins_anew() -> None:
    before = dates(np.random.default_rng(0), 4, texts=200)
    after = [
        {text: value + 0.5 for text, value in one.items()} for one in dates(np.random.default_rng(0), 6, texts=200)
    ]
    found = looks(before + after, figures=1)
    assert found
    assert len(before) <= found[0] <= len(before) + 2
    assert len(found) == 1


def test_which_texts_moved() -> None:
    before = [{"a": 0.0, "b": 1.0, "c": 0.0}, {"a": 0.0, "b": 1.0, "c": 0.0}]
    assert moved(before, {"a": 1.0, "b": 1.0, "c": -0.5}, 9) == [("a", 0.0, 1.0), ("c", 0.0, -0.5)]


THINGS = (
    "film", "song", "book", "play", "show", "tale", "poem", "opera", "story", "series", "concert", "novel", "lecture",
    "comic", "ballet", "essay",
)  # fmt: skip


def run(folder: Path, day: int, changed: bool, data: list[str], **more: object) -> None:
    def model(text: str) -> str:
        number = int(hashlib.sha256(text.encode()).hexdigest(), 16)
        return "negative" if number % 3 == 0 or (changed and "She" in text) else "positive"

    audit("sentiment", model=model, data=data, attributes="gender", seed=5, out=folder, **more)  # type: ignore[arg-type]


def test_the_command_follows_runs_of_one_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = Random(2)
    things = [
        f"{a} {b}"
        for a in ("quiet", "loud", "new", "old", "long", "short")
        for b in ("film", "song", "book", "play", "show")
    ]
    rng.shuffle(things)
    data = [f"She liked the {thing} about the sea." for thing in things]
    series = tmp_path / "series"
    assert cli.run(["compare", str(series)]) == 2
    assert "no finished run of texts" in " ".join(capsys.readouterr().err.split())
    for day in range(3):
        run(series, day, changed=False, data=data)
    assert cli.run(["compare", str(series), "--fail-on", "changed"]) == 0
    told = capsys.readouterr()
    assert "no change shown at the last run" in " ".join(told.out.split())
    assert "--fail-on: changed: does not hold" in told.err
    run(series, 9, changed=False, data=data[:9])
    codes = []
    for day in (3, 4, 5):
        run(series, day, changed=True, data=data)
        codes.append(cli.run(["compare", str(series), "--fail-on", "changed"]))
    assert 1 in codes
    assert "--fail-on: changed: holds" in capsys.readouterr().err
    assert cli.run(["compare", str(series), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["runs"]) == 6
    assert list(found["others"].values()) == ["another plan"]
    by = {(one["attribute"], one["group"]): one["points"] for one in found["series"]}
    assert any(point["changed"] for point in by["gender", "female"][3:])
    assert not any(point["changed"] for points in by.values() for point in points[:3])
    assert found["moved"]
    assert all("She liked" in one["text"] for one in found["moved"])
    page = tmp_path / "history.html"
    assert cli.run(["compare", str(series), "--format", "html", "--out", str(page), "--fail-on", "never"]) == 0
    assert "▲ changed" in page.read_text(encoding="utf-8")


def test_runs_of_one_second_follow_one_another_as_they_were_made(tmp_path: Path) -> None:
    data = [f"She liked the {thing} about the sea." for thing in THINGS]
    started = []
    for number in range(6):
        run(tmp_path / "series", number, changed=False, data=data)
        newest = max((tmp_path / "series").glob("*/plan.json"), key=lambda p: p.stat().st_mtime_ns).parent
        started.append(newest.name)
    assert list(watch(tmp_path / "series").runs) == started


def test_a_run_in_which_something_was_changed_is_left_out_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [f"She liked the {thing} about the sea." for thing in THINGS]
    for day in range(2):
        run(tmp_path, day, changed=False, data=data)
    first = min(tmp_path.glob("2*"))
    journal = first / "responses.jsonl"
    journal.write_text(journal.read_text().replace('"positive"', '"negative"', 5))
    assert cli.run(["compare", str(tmp_path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["runs"]) == 1
    assert "is not as it was written" in found["others"][first.name]


@pytest.mark.parametrize("runs", [1, 3])
def test_too_few_texts_cannot_tell(runs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for day in range(runs):
        run(tmp_path, day, changed=day > 1, data=["She liked the film.", "She liked the song.", "She liked the play."])
    assert cli.run(["compare", str(tmp_path), "--fail-on", "changed"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "it cannot be told whether anything changed" in told
    assert "from 12 texts with an answer on, and of 3 texts fewer have one" in told
