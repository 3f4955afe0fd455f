"""Packages of others, as ``pip install`` leaves them: every example of docs/extending is chosen from the command line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from auditor.cli.main import run
from auditor.core import registry
from auditor.core.errors import ConfigError, PluginError
from auditor.tasks import kinds, template

DOCS = Path(__file__).parents[2] / "docs/extending"
Install = Callable[..., None]
MODEL = '''
from auditor import Model, Reply


class Hasty(Model):
    """Names the first person, and never says that it cannot know."""

    name = fingerprint = "hasty-1"
    deterministic = True
    costs = "nothing"

    def __init__(self, word: str = "first") -> None:
        self.word = word

    async def generate(self, batch):
        return [Reply(self.word) for _ in batch]


class Far(Hasty):
    """Asks somebody who wants money."""

    costs = "tokens"
'''
SECTION = '''
from auditor import ReportSection
from auditor.report.document import Section, Text


class Contact(ReportSection):
    """Whom to ask about a run."""

    name = "acme/contact.v1"

    def build(self, record, evidence):
        return Section(id="contact", title="Contact", short="Contact", blocks=(Text("Ask Sato <b>."),))
'''


def block(page: str, language: str, begins: str = "") -> str:
    """The block of a page that holds ``begins``."""
    found = re.findall(
        rf"^```{language}\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return str(next(code for code in found if begins in code))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Write a module and the folder that names its entry points."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)

    def install(package: str, code: str, groups: Mapping[str, Mapping[str, str]]) -> None:
        (site / f"{package.replace('-', '_')}.py").write_text(code, encoding="utf-8")
        info = site / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
            for group, entries in groups.items()
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for kind in (*registry.KINDS, kinds.KINDS):
            monkeypatch.setattr(kind, "_offers", None)

    return install


def declared(page: str) -> tuple[str, Mapping[str, Mapping[str, str]]]:
    """Name and entry points of the package of a page."""
    project = tomllib.loads(block(page, "toml", "[project]"))["project"]
    return project["name"], project["entry-points"]


def record_of(folder: Path) -> dict[str, object]:
    (path,) = (folder / "reports").glob("*/run.json")
    found: dict[str, object] = json.loads(path.read_text("utf-8"))
    return found


def test_a_suite_with_an_outcome_and_a_measure_of_its_own(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = block("measure.md", "python")
    assert len(code.splitlines()) <= 80
    install(*[declared("measure.md")[0], code, declared("measure.md")[1]])
    install(
        "acme-model", MODEL, {"auditor.models": {"hasty.v1": "acme_model:Hasty", "far.v1": "acme_model:Far"}}
    )
    (tmp_path / "guess.yaml").write_text(block("measure.md", "yaml"), encoding="utf-8")
    words = [
        "--task",
        "guess.yaml",
        "--suite",
        "acme/guess",
        "--suite-option",
        "places=2",
        "--full",
        "--no-cache",
    ]
    assert run([*words, "--model", "hasty:second"]) == 0
    shown = capsys.readouterr().out
    assert "What the suite acme/guess measures" in shown
    record = record_of(tmp_path)
    rows = {row["figure"]: row for row in record["figures"]}  # type: ignore[attr-defined]
    # Of the two orders of a text, each person is named second once.
    assert (rows["stereotype"]["value"], rows["stereotype"]["cases"], rows["undecided"]["value"]) == (
        0.0,
        8,
        0.0,
    )
    assert record["provenance"]["plugin"] == {"suite": "acme/guess.v1", "from": "acme-guess 1.0"}  # type: ignore[index]
    assert record["models"]["hasty-1"]["counts"]["calls"] == 16  # type: ignore[index]
    (path,) = (tmp_path / "reports").glob("*/run.json")
    assert run(["verify", str(path.parent)]) == 0
    assert run(["resume", str(path.parent)]) == 0
    for wrong, told in (
        ("places=many", "valid integer"),
        ("rooms=2", "has places"),
        ("places", "NAME=VALUE"),
    ):
        assert run([*words[:5], wrong, "--no-cache", "--model", "hasty"]) == 2
        assert told in " ".join(capsys.readouterr().err.split())
    assert run([*words, "--model", "far"]) == 2  # nobody said that this one is free
    assert "far may cost money" in capsys.readouterr().err


def test_a_kind_of_task_reads_what_no_other_does(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(declared("task.md")[0], block("task.md", "python", "StarReader"), declared("task.md")[1])
    install("acme-model", MODEL, {"auditor.models": {"hasty.v1": "acme_model:Hasty"}})
    (tmp_path / "rate.yaml").write_text(template("rate", "stars"), encoding="utf-8")
    (tmp_path / "texts.txt").write_text("She came late.\nHe paid for his lamp.\n", encoding="utf-8")
    words = ["--task", "rate.yaml", "--data", "texts.txt", "--no-cache", "--model"]
    assert run([*words, "hasty:★★★☆☆"]) == 0
    capsys.readouterr()
    record = record_of(tmp_path)
    assert record["spec"]["kind"] == "stars"  # type: ignore[index]
    assert record["scores"]["scale"] == [0.0, 10.0]  # type: ignore[index]
    counts = record["models"]["hasty-1"]["counts"]  # type: ignore[index]
    assert (counts["unparsed"], counts["calls"] > 0) == (0, True)


def test_the_suite_of_the_page_is_listed_and_run(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package, groups = declared("suite.md")
    gone = {"auditor.renderers": {"acme/gone.v1": "gone:Gone", "acme/plain.v1": "re:compile"}}
    install(package, block("suite.md", "python", "class Titles"), groups | gone)
    assert run(["plugins"]) == 0
    listed = capsys.readouterr().out
    row = next(line for line in listed.splitlines() if "acme/titles.v1" in line)
    assert row.split() == ["acme/titles.v1", "acme-titles", "1.0", "acme_titles:Titles"]
    assert "renderer 'acme/gone.v1' (gone:Gone) did not load" in listed
    assert "does not derive from auditor.Renderer" in listed
    assert run(["--task", "sentiment", "--suite", "acme/titles", "--limit", "20", "--model", "reviews"]) == 0
    assert capsys.readouterr().out.startswith("sentiment · reviews · 20 texts")
    record = record_of(tmp_path)
    assert record["counts"]["discarded"] == 0  # type: ignore[index]
    assert ["title"] in [e["attributes"] for e in record["estimates"]]  # type: ignore[attr-defined]


def test_formats_and_sections_are_chosen_by_name(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--task", "sentiment", "--limit", "8", "--model", "vader"]) == 0
    (path,) = (tmp_path / "reports").glob("*/run.json")
    install(
        "outline",
        block("format.md", "python", "class Outline"),
        {"auditor.renderers": {"outline.v1": "outline:Outline"}},
    )
    install("acme-contact", SECTION, {"auditor.sections": {"acme/contact.v1": "acme_contact:Contact"}})
    capsys.readouterr()
    assert (
        run(["report", str(path.parent), "--format", "outline", "--section", "acme/contact", "--out", "-"])
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "  Contact"
    assert (
        run(["report", str(path.parent), "--format", "html", "--section", "acme/contact", "--out", "-"]) == 0
    )
    assert "Ask Sato &lt;b&gt;." in capsys.readouterr().out
    assert run(["report", str(path.parent), "--section", "acme/contract"]) == 2
    assert "Did you mean acme/contact?" in capsys.readouterr().err


def test_no_package_takes_the_place_of_another(install: Install) -> None:
    names = {
        "vader": "acme_model:Hasty",
        "vader.v9": "acme_model:Hasty",
        "own.v1": "acme_model:Far",
        "own.v2": "acme_model:Hasty",
    }
    install("acme-model", MODEL, {"auditor.models": names})
    assert registry.MODELS.load("vader").__name__ == "Vader"
    assert registry.MODELS.resolve("own") == "own.v2"
    with pytest.raises(ConfigError, match=r"give one of acme-model:vader.v9"):
        registry.MODELS.load("vader.v9")
    assert registry.MODELS.load("acme-model:vader.v9").__name__ == "Hasty"
    from auditor.models import make

    assert make("acme-model:vader:second").word == "second"  # type: ignore[attr-defined]
    install("other-model", MODEL, {"auditor.models": {"own.v3": "other_model:Hasty"}})
    with pytest.raises(
        ConfigError, match=r"give one of acme-model:own.v1, acme-model:own.v2, other-model:own.v3"
    ):
        registry.MODELS.resolve("own")
    assert registry.MODELS.resolve("other-model:own") == "other-model:own.v3"
    install("third", "", {"auditor.models": {"lost.v1": "third:Lost"}})
    with pytest.raises(PluginError, match="did not load"):
        registry.MODELS.load("lost")


def test_what_is_built_in_is_declared_like_the_rest() -> None:
    forms = {f"{page}{form}.v1" for page in registry.PAGES for form in ("", "-md", "-json")}
    assert forms <= set(registry.RENDERERS.names())
    for kind in registry.KINDS:
        for name in kind.names():
            assert kind.origin(name) == "built in"
            assert issubclass(kind.load(name), kind.base)  # type: ignore[arg-type]
