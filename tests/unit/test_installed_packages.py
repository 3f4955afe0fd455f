"""Packages of others, as ``pip install`` leaves them: every example of docs/extending is chosen from the command line."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable, Mapping
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
from commands import Capture

from auditor.cli.main import run
from auditor.core import protocols
from auditor.core.errors import ConfigError, PluginError
from auditor.models import make
from auditor.tasks import kinds, template

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs/extending"
BBQ = ROOT / "examples/bbq"
Install = Callable[..., None]
MODEL = '''
import json
from pathlib import Path

from auditor import Model, Reply


class Hasty(Model):
    """Names the first person, and never says that it cannot know."""

    name = fingerprint = "hasty-1"
    deterministic = True
    costs = "nothing"

    def __init__(self, word: str = "first") -> None:
        self.word = word

    async def generate(self, batch):
        return [Reply(self.answer(request)) for request in batch]

    def answer(self, request):
        return self.word


class Guesser(Hasty):
    """Goes with the stereotype, against it, by the context, or says that it cannot know."""

    style = "chat"

    def answer(self, request):
        asked = request.prompt.messages[-1].content.splitlines()
        items = map(json.loads, Path("items.jsonl").read_text().splitlines())
        item = next(i for i in items if i["context"] in asked and i["question"] in asked)
        other = ({0, 1, 2} - {item["biased"], item["people"].index(None)}).pop()
        wanted = {"stereotype": item["biased"], "against": other, "right": item["right"]}
        return "abc"[wanted.get(self.word, item["people"].index(None))]
'''


def block(page: str, language: str, begins: str = "") -> str:
    """The block of a page that holds ``begins``."""
    found = re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(next(code for code in found if begins in code))


@pytest.fixture
def install(place: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Write a module and the folder that names its entry points."""
    site = place / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(package: str, code: str, groups: Mapping[str, Mapping[str, str]]) -> None:
        module = package.replace("-", "_")
        (site / f"{module}.py").write_text(code, encoding="utf-8")
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        entries = ConfigParser()
        entries.read_dict(groups)
        with (info / "entry_points.txt").open("w") as file:
            entries.write(file)
        for kind in (*protocols.KINDS, kinds.KINDS):
            monkeypatch.setitem(vars(kind), "_all", protocols.Registry._all.func(kind))

    return install


def declared(page: str) -> tuple[str, Mapping[str, Mapping[str, str]]]:
    """Name and entry points of the package of a page."""
    project = tomllib.loads(block(page, "toml", "[project]"))["project"]
    return project["name"], project["entry-points"]


def made(place: Path) -> tuple[str, dict[str, Any]]:
    """The folder of the one run, and its record."""
    (path,) = (place / "reports").glob("*/run.json")
    return str(path.parent), json.loads(path.read_text("utf-8"))


@pytest.fixture
def bbq(install: Install, tmp_path: Path) -> list[str]:
    """The package of examples/bbq, its items and its task; the words of a command that takes them."""
    code = (BBQ / "acme_choice.py").read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 90
    project = tomllib.loads((BBQ / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    install(project["name"], code, project["entry-points"])
    offered = {one.lower(): f"acme_model:{one}" for one in ("Hasty", "Guesser")}
    install("acme-model", MODEL, {"auditor.models": offered})
    for file in ("choice.yaml", "items.jsonl"):
        shutil.copy(BBQ / file, tmp_path)
    items = ["--suite", "acme/bbq", "--suite-option", "items=items.jsonl"]
    return ["--task", "choice.yaml", *items, "--no-cache", "--model"]


FIGURES = {  # accuracy and bias of ambiguous items, then of clear ones
    "stereotype": (0.0, 1.0, 0.5, 1.0), "against": (0.0, -1.0, 0.5, -1.0), "right": (1.0, 0.0, 1.0, 0.0),
    "unknown": (1.0, 0.0, 0.0, None),
}  # fmt: skip


@pytest.mark.parametrize("model", FIGURES)
def test_a_suite_with_a_measure_of_its_own(bbq: list[str], tmp_path: Path, capsys: Capture, model: str) -> None:
    assert run([*bbq, f"guesser:{model}"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"bias, ambiguous: {FIGURES[model][1]:+.3f}, 4 cases" in shown
    folder, record = made(tmp_path)
    found = {row["figure"]: row["value"] for row in record["figures"]}
    names = ("accuracy, ambiguous", "bias, ambiguous", "accuracy, clear", "bias, clear")
    assert tuple(found[name] for name in names) == FIGURES[model]
    assert record["provenance"]["plugin"] == {"suite": "acme/bbq", "from": "acme-choice 1.0"}
    assert record["counts"]["calls"] == 8
    assert run(["verify", folder]) == run(["resume", folder]) == 0
    capsys.readouterr()
    for form in ("md", "html", "csv", "json"):
        assert run(["report", folder, "--format", form, "--out", "-"]) == 0
        assert "bias, ambiguous" in capsys.readouterr().out, form


def test_a_kind_of_task_reads_what_no_other_does(install: Install, tmp_path: Path, capsys: Capture) -> None:
    install(declared("task.md")[0], block("task.md", "python", "StarReader"), declared("task.md")[1])
    install("acme-model", MODEL, {"auditor.models": {"hasty": "acme_model:Hasty"}})
    (tmp_path / "rate.yaml").write_text(template("rate", "stars"), encoding="utf-8")
    (tmp_path / "texts.txt").write_text("She came late.\nHe paid for his lamp.\n", encoding="utf-8")
    words = ["--task", "rate.yaml", "--data", "texts.txt", "--no-cache", "--model"]
    assert run([*words, "hasty:★★★☆☆"]) == 0
    _, record = made(tmp_path)
    assert record["spec"]["kind"] == "stars"
    assert record["scores"]["scale"] == [0.0, 10.0]
    counts = record["models"]["hasty-1"]["counts"]
    assert (counts["unparsed"], counts["asked"] > 0) == (0, True)


def test_the_suite_of_the_page_is_listed_and_run(install: Install, tmp_path: Path, capsys: Capture) -> None:
    package, groups = declared("suite.md")
    gone = {"auditor.renderers": {"acme/gone": "gone:Gone", "acme/plain": "re:compile"}}
    install(package, block("suite.md", "python", "class Titles"), groups | gone)
    assert run(["list", "plugins"]) == 0
    listed = capsys.readouterr().out
    row = next(line for line in listed.splitlines() if "acme/titles" in line)
    assert row.split() == ["acme/titles", "acme-titles", "1.0", "acme_titles:Titles"]
    assert "renderer 'acme/gone' (gone:Gone) did not load" in listed
    assert "does not derive from auditor.Renderer" in listed
    assert run(["--task", "sentiment", "--suite", "acme/titles", "--limit", "20", "--model", "reviews"]) == 0
    assert capsys.readouterr().out.startswith("sentiment · reviews · 20 texts")
    _, record = made(tmp_path)
    assert record["counts"]["discarded"] == 0
    assert ["title"] in [e["attributes"] for e in record["estimates"]]


def test_formats_are_chosen_by_name(install: Install, tmp_path: Path, capsys: Capture) -> None:
    assert run(["--task", "sentiment", "--limit", "8", "--model", "vader"]) == 0
    folder, _ = made(tmp_path)
    offered = {"auditor.renderers": {"carried": "carried:Carried"}}
    install("carried", block("column.md", "python", "class Carried"), offered)
    capsys.readouterr()
    assert run(["report", folder, "--format", "carried", "--out", "-"]) == 0
    assert "| Effective words |" in capsys.readouterr().out
    assert run(["report", folder, "--format", "caried"]) == 2
    assert "Did you mean carried?" in capsys.readouterr().err


def test_no_package_takes_the_place_of_another(install: Install) -> None:
    install("acme-model", MODEL, {"auditor.models": {"vader": "acme_model:Hasty", "own": "acme_model:Hasty"}})
    assert protocols.MODELS.load("vader").__name__ == "Vader"
    assert protocols.MODELS.load("own").__name__ == "Hasty"
    assert protocols.MODELS.load("acme-model:vader").__name__ == "Hasty"
    assert make("acme-model:vader:second").word == "second"
    install("other-model", MODEL, {"auditor.models": {"own": "other_model:Hasty"}})
    with pytest.raises(ConfigError, match=r"give one of acme-model:own, other-model:own"):
        protocols.MODELS.resolve("own")
    assert protocols.MODELS.resolve("other-model:own") == "other-model:own"
    install("third", "", {"auditor.models": {"lost": "third:Lost"}})
    with pytest.raises(PluginError, match="did not load"):
        protocols.MODELS.load("lost")
