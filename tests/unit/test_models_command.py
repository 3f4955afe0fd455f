"""``audit list models``: every kind of spec is there, with what it needs and never a key's value."""

from __future__ import annotations

from importlib.util import find_spec as real

import pytest

from auditor.cli.main import run
from auditor.core.registry import MODELS
from auditor.models import catalogue

SECRET = "sk-0123456789-secret"


def test_every_kind_of_spec_is_listed_with_what_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = {"torch", "langchain", "langchain_ollama", "httpx"}
    monkeypatch.setattr(catalogue, "find_spec", lambda name: None if name in gone else real(name))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "  ")
    assert run(["list", "models"]) == 0
    out = capsys.readouterr().out
    for name in set(MODELS.names()) - {"planted"}:
        assert f"\n{name}" in f"\n{out}"
    assert "needs torch" in out
    assert 'Run: pip install "llm-bias-auditor[local]"' in out
    assert "Run: pip install httpx" in out
    assert "Run: pip install langchain-ollama" in out
    assert "OPENAI_API_KEY set" in out
    assert "ANTHROPIC_API_KEY not set" in out
    assert SECRET not in out


def test_plugins_of_other_packages_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODELS, "names", lambda: ["acme/scorer", "vader"])
    assert catalogue.kinds()[-1].spec == "acme/scorer"
