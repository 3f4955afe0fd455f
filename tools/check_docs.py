"""Check the documentation: links resolve, commands exist with their options, pages are short and in plain English.

Usage: ``python tools/check_docs.py`` (``make docs``). Exit 1 where something is found.
"""

from __future__ import annotations

import fnmatch
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import cli_reference

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
SHOWN = re.compile(r"^[ \t]*(?:\$ )?(audit (?:\\\n|.)*)$", re.MULTILINE)
INLINE = re.compile(r"`(audit [^`\n]*)`")
FENCE = re.compile(r"^[ \t]*```.*?^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
MARKED = re.compile(
    r"(?:^[ ]*<!-- docs: (?P<mark>[^>]*?) -->\n)?^[ ]*```(?P<language>[a-z]*)\n(?P<code>.*?)^[ ]*```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
INDENTED = re.compile(r"(?:^(?: {4}|\t).*\n?)+", re.MULTILINE)
# Words that a page, or all pages of a folder together, may have; the first pattern that fits a page counts.
PAGE_WORDS = {
    "README.md": 700,
    "CHANGELOG.md": 2_000,
    "docs/index.md": 1_200,
    "docs/guide/*": 1_200,
    "docs/method/statistics.md": 2_000,
    "docs/method/validity.md": 1_000,
    "docs/decisions/0004-claims.md": 1_200,
    "docs/decisions/*": 400,
}
ALL_WORDS = 30_000  # of docs/, without the reference
# Phrases that need a second reading, with plain ones.
PLAIN = {
    r"\bbeside\b": "next to, and, with",
    r"\bstands? (?!for\b|alone\b|out\b)": "is, says",
    r"\bstood\b": "was",
    r"\b(?:comes?|came) to (?:be|nothing|the same)\b": "is, amounts to",
    r"\bwhat .{1,30} comes? to\b": "amounts to",
    r"\bis none\b|\bare none\b": "is not one",
    r"(?<![Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b)(?:[a-z-]+ )?[a-z]+\b": "is not a",
    r"\bin vain\b": "without result",
    r"\bof the same build\b": "with the same structure",
    r"\blaid beside\b": "mapped to",
    r"\bgone on with\b": "resumed",
    r"\bwhat came of\b": "the result of",
    r"\b(?:[Nn]obody|[Nn]o one) (?:says|said|hid|guesses|knows|asked)\b": "name the part that acts",
    r"\bthe one that\b|\bthose of which\b|\bthe ones that\b": "name the thing",
}


def pages() -> list[Path]:
    """Every Markdown file that readers of the project see."""
    beside = [ROOT / name / "README.md" for name in ("grammars", "prompts", "dictionaries", "examples/museum")]
    return [p for p in [*sorted(ROOT.glob("*.md")), *beside, *sorted((ROOT / "docs").rglob("*.md"))] if p.exists()]


def shown(text: str) -> Iterator[str]:
    """The command lines of a page: in blocks, and in running text between backticks."""
    blocks = [m.group() for m in FENCE.finditer(text)]
    rest = FENCE.sub("", text)
    for block in [*blocks, *(m.group() for m in INDENTED.finditer(rest))]:
        for match in SHOWN.finditer(block):
            yield re.split(r" {3,}(?!--)", re.sub(r"\\\n\s*", "", match.group(1)))[0]  # what follows is an explanation
    yield from INLINE.findall(rest)


def unmarked(text: str) -> Iterator[str]:
    """Commands that no test runs: in indented blocks, and in blocks that neither say run nor why they are left out."""
    for match in MARKED.finditer(text):
        mark, language = match["mark"] or "", match["language"]
        if language in ("console", "sh") and not re.match(r"run\b|skip \S|file \S", mark):
            yield f"no <!-- docs: run --> or <!-- docs: skip REASON --> above: {match['code'].splitlines()[0]}"
        elif not language and SHOWN.match(match["code"]) and "audit:" not in match["code"]:
            yield f"a block of commands has the language sh: {match['code'].splitlines()[0]}"
    for match in INDENTED.finditer(FENCE.sub("", text)):
        for line in SHOWN.findall(match.group()):
            yield f"commands stand in a block with ```sh, where they are run: {line}"


def command_problem(line: str, known: dict[str, str]) -> str:
    """What is wrong with one command line; empty where nothing is."""
    try:
        words = shlex.split(line, comments=True)[1:]
    except ValueError:
        return "" if "…" in line else f"`{line}` is no command line"
    cut = next(
        (i for i, word in enumerate(words) if word in (";", "&&", "|", ">") or word.startswith((">", "|"))), None
    )
    words = words[:cut]
    if not words or words[0] in ("COMMAND", "[run]", "help", "--help", "--version", "-V", "-h"):
        return ""
    name = "run" if words[0].startswith("-") else words[0].rstrip(",;.:")
    if name not in known:
        return f"`audit {name}` is no command"
    for length in (3, 2):
        if len(words) >= length and (longer := " ".join(words[:length])) in known:
            name = longer
            break
    allowed = cli_reference.options(known[name])
    for word in words:
        option = word.partition("=")[0]
        if re.fullmatch(r"--[a-z][a-z0-9-]*", option) and option not in allowed:
            return f"`audit {name}` has no option {option}"
    return ""


def words(text: str) -> int:
    """Count the words of a page as ``wc -w`` does."""
    return len(text.split())


def too_long() -> Iterator[str]:
    """Pages with more words than they may have, and all of docs/ together."""
    total = 0
    for path in pages():
        name, count = str(path.relative_to(ROOT)), words(path.read_text(encoding="utf-8"))
        total += count if name.startswith("docs/") and not name.startswith("docs/reference/") else 0
        most = next((most for pattern, most in PAGE_WORDS.items() if fnmatch.fnmatch(name, pattern)), count)
        if count > most:
            yield f"{name}: {count:,} words, {most:,} at most"
    if total > ALL_WORDS:
        yield f"docs: {total:,} words, {ALL_WORDS:,} at most"


def twisted(text: str) -> Iterator[str]:
    """Phrases of a page that need a second reading; code and quoted words do not count."""
    prose = re.sub(r"`[^`\n]*`|\*[^*\n]*\*", "", FENCE.sub("", text))
    for pattern, instead in PLAIN.items():
        for match in re.finditer(pattern, prose):
            yield f"{match.group()!r}: write {instead}"


def problems() -> list[str]:
    """Everything wrong in the pages, one line each."""
    known = cli_reference.commands()
    found: list[str] = []
    for path in pages():
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT)
        for target in LINK.findall(FENCE.sub("", text)):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not (path.parent / target).exists() and not target.endswith("reference/cli.md"):
                found.append(f"{name}: link to {target}, which does not exist")
        history = path.name == "CHANGELOG.md"  # it names commands that are gone
        told = (command_problem(line, known) for line in shown("" if history else text))
        plain = twisted(text) if str(name).startswith("docs/") or name == Path("README.md") else ()
        found += [f"{name}: {problem}" for problem in dict.fromkeys([*told, *unmarked(text), *plain]) if problem]
    return [*found, *too_long()]


def main() -> None:
    """Print the problems."""
    found = problems()
    print("\n".join(found) or "documentation: links and commands are in order")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
