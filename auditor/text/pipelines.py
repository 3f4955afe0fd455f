"""Finds and loads spaCy pipelines (the embedded one, a folder, an installed package)."""

from __future__ import annotations

import hashlib
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

from auditor.core import reading
from auditor.core.errors import ConfigError, UnknownPlugin
from auditor.text.english import word_set

# Components that neither tags nor trees need, by factory name.
_UNUSED = word_set(
    """ner beam_ner lemmatizer trainable_lemmatizer attribute_ruler senter sentencizer morphologizer
    entity_ruler entity_linker textcat textcat_multilabel spancat spancat_singlelabel span_ruler
    span_finder"""
)
_NOT_WEIGHTS = frozenset({"README.md", "figures.json"})


def _folder(name: str) -> Path:
    """Find the folder of a pipeline: the embedded one, a path, or an installed package."""
    if name == "embedded":
        folder = reading.shipped("embedded", "parser")
        if not (folder / "config.cfg").is_file():
            raise ConfigError(
                f"the embedded parser is not in {folder}; the installation is incomplete.",
                below="Run: pip install --force-reinstall llm-bias-auditor",
            )
        return folder
    if (Path(name) / "config.cfg").is_file():
        return Path(name)
    import spacy

    if not spacy.util.is_package(name):
        hint = f"To install a spaCy pipeline, run: python -m spacy download {name}"
        raise UnknownPlugin("parser", name, {"embedded", *spacy.util.get_installed_models()}, hint)
    package = Path(spacy.util.get_package_path(name))
    # A package holds its data in a folder NAME-VERSION.
    return next((config.parent for config in sorted(package.glob("*/config.cfg"))), package)


def without_torch() -> None:
    """Import spaCy without PyTorch, which takes 230 MiB and which the embedded parser does not use."""
    if {"spacy", "torch"} & sys.modules.keys():
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        import spacy  # noqa: F401
    finally:
        del sys.modules["torch"]


@lru_cache(maxsize=2)
def load(name: str) -> Any:
    """Load a spaCy pipeline without what is not needed; shared, since loading takes a second."""
    import spacy

    folder = _folder(name)
    config = spacy.util.load_config(folder / "config.cfg")
    factories = {part: block.get("factory") for part, block in config["components"].items()}
    names = config["nlp"]["pipeline"]
    for needed in ("tagger", "parser"):
        if needed not in [factories.get(part) for part in names]:
            raise ConfigError(
                f"the spaCy pipeline {name!r} has no {needed}; its components: {', '.join(names) or 'none'}. "
                "Use --parser embedded, or a pipeline that has one."
            )
    return spacy.load(folder, exclude=[part for part, made in factories.items() if made in _UNUSED])


def fingerprint(name: str) -> str:
    """SHA-256 over names and contents of the files of a pipeline that shape a parse."""
    folder = _folder(name)
    total = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.name in _NOT_WEIGHTS or "__pycache__" in path.parts:
            continue
        total.update(path.relative_to(folder).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
