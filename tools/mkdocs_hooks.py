"""What mkdocs is told beside mkdocs.yml: generated pages, pages from outside docs/, and the navigation by folders.

The repository is written to be read as files as well, so links go from docs/ to files beside it
(``../grammars/README.md``). In the site those files are pages of their own, and links to them are turned round here;
a link to any other file of the repository becomes its name.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))  # mkdocs takes it out again when this file is loaded

import cli_reference  # noqa: E402

# File of the repository -> page of the site.
BROUGHT = {
    "grammars/README.md": "reference/files/grammars.md",
    "prompts/README.md": "reference/files/tasks.md",
    "dictionaries/README.md": "reference/files/dictionaries.md",
    "examples/museum/README.md": "guide/museum.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
GENERATED = "reference/cli.md"
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)[ \t]*$)", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Spell out folders of the navigation, and leave out pages that this version does not have."""
    docs = Path(config.docs_dir)
    config.nav = _spelled(config.nav or [], docs)
    return config


def _spelled(items: list[Any], docs: Path) -> list[Any]:
    out: list[Any] = []
    for item in items:
        title, target = next(iter(item.items())) if isinstance(item, dict) else (None, item)
        if isinstance(target, list):
            out.append({title: _spelled(target, docs)})
        elif target.endswith("/"):
            out.extend(f"{target}{path.name}" for path in sorted((docs / target).glob("*.md")))
        elif (docs / target).exists() or target == GENERATED or target in BROUGHT.values():
            out.append(item)
    return out


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not stand in docs/."""
    files.append(File.generated(config, GENERATED, content=cli_reference.page()))
    for source, target in BROUGHT.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository into links of the site."""
    uri = page.file.src_uri
    home = next((source for source, target in BROUGHT.items() if target == uri), f"docs/{uri}")
    parts = FENCE.split(markdown)
    parts[::2] = [LINK.sub(lambda m: turned(m, home, uri), part) for part in parts[::2]]
    return "".join(parts)


def turned(match: re.Match[str], home: str, uri: str) -> str:
    """One link of the file ``home``, as it must stand on the page ``uri``."""
    label, target = match.groups()
    path, hash_, anchor = target.partition("#")
    if "://" in target or target.startswith("mailto:") or not path:
        return match.group()
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(home), path))
    if meant in BROUGHT:
        there = BROUGHT[meant]
    elif meant.startswith("docs/") and not (ROOT / meant).is_dir():
        there = meant.removeprefix("docs/")
    else:
        return f"{label} (`{meant}`)" if label.strip("`") != meant else f"`{meant}`"
    return f"[{label}]({posixpath.relpath(there, posixpath.dirname(uri) or '.')}{hash_}{anchor})"
