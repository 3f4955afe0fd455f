"""``audit list models``: every kind of spec stands there, with what it needs and never a key's value."""

from __future__ import annotations

import json
from importlib.util import find_spec as real

import pytest

from auditor.cli.main import COMMANDS, run
from auditor.core.registry import MODELS
from auditor.models import catalogue

SECRET = "sk-0123456789-secret"


def rows(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    assert run(["list", "models", "--format", "json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


def test_every_kind_of_spec_is_listed() -> None:
    known = set(MODELS.names()) - {"planted"}
    assert known <= {row.spec.partition(":")[0] for row in catalogue.kinds()}
    assert {"list", "doctor"} <= set(COMMANDS)


def test_what_is_missing_and_the_line_to_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = {"torch", "langchain", "langchain_ollama", "httpx"}
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None if name in gone else real(name))
    found = {str(row["spec"]): row for row in rows(capsys)}
    hf = found["hf:ID-or-PATH"]
    assert (hf["installed"], hf["missing"]) == (False, ["torch"])
    assert hf["install"] == 'pip install "llm-bias-auditor[local]"'
    assert found["http:FILE.yaml"]["install"] == "pip install httpx"
    providers = found["langchain:PROVIDER:NAME"]["providers"]
    assert isinstance(providers, dict)
    assert providers["ollama"]["install"] == "pip install langchain-ollama"
    assert found["reviews"]["install"] is None
    assert run(["list", "models"]) == 0
    out = capsys.readouterr().out
    assert "needs torch" in out
    assert 'Run: pip install "llm-bias-auditor[local]"' in out


def test_keys_are_told_to_be_there_and_never_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    found = {str(row["spec"]): row for row in rows(capsys)}
    environment = found["openai:NAME"]["environment"]
    assert isinstance(environment, dict)
    assert environment["OPENAI_API_KEY"] is True
    langchain = found["langchain:PROVIDER:NAME"]["environment"]
    assert isinstance(langchain, dict)
    assert langchain["ANTHROPIC_API_KEY"] is False
    assert SECRET not in json.dumps(found)
    assert run(["list", "models"]) == 0
    out = capsys.readouterr().out
    assert "OPENAI_API_KEY set" in out
    assert "ANTHROPIC_API_KEY not set" in out
    assert SECRET not in out


def test_plugins_of_other_packages_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODELS, "names", lambda: ["acme/scorer", "vader"])
    assert catalogue.kinds()[-1].spec == "acme/scorer"


def test_an_unknown_format(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "models", "--format", "xml"]) == 2
    assert "--format" in capsys.readouterr().err
