"""``audit dictionary``: list and check dictionaries, and propose entries from a corpus."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from auditor.cli import common
from auditor.cli.common import invoke, say
from auditor.core.counting import plural

if TYPE_CHECKING:
    from auditor.perturb.dictionaries import Dictionary

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True)


@app.command("list")
def list_dictionaries(
    attribute: Annotated[str | None, typer.Argument(help="Show the groups and words of one attribute or view.")] = None,
    format: common.Format = "terminal",
) -> int:
    """List the attributes, groups and numbers of terms that come with the tool, and the hinter views."""
    from auditor.perturb import dictionaries

    common.check_format(format)
    if attribute is not None:
        return _list_one(attribute, format)
    rows = [_listed(dictionaries.load(name)) for name in dictionaries.builtin()]
    views = [
        _View(view=name, attributes=tuple(parts), words=_words(dictionaries.view(name)))
        for name, parts in dictionaries.VIEWS.items()
    ]
    if format == "json":
        sys.stdout.write(json.dumps(msgspec.to_builtins([*rows, *views]), indent=2) + "\n")
        return 0
    for row in rows:
        mark = "" if row.default else " (only with --attributes)"
        groups = ", ".join(row.groups[:12]) + (", …" if len(row.groups) > 12 else "")
        say(f"{row.attribute:<20}{row.terms:>5} terms, {plural(len(row.groups), 'group')}: {groups}{mark}")
    say("", "Views of --protocol hinter, unions of attributes:")
    for view in views:
        say(f"{view.view:<20}{view.words:>5} words: {', '.join(view.attributes)}")
    say(f"{'neutral':<20}{_words(dictionaries.neutral()):>5} words for placebo edits")
    return 0


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A dictionary as it is listed."""

    attribute: str
    default: bool
    groups: tuple[str, ...]
    terms: int
    words: int


class _View(msgspec.Struct, frozen=True, kw_only=True):
    """A union of attributes as it is listed."""

    view: str
    attributes: tuple[str, ...]
    words: int


def _listed(one: Dictionary) -> _Listed:
    return _Listed(
        attribute=one.attribute,
        default=one.default,
        groups=tuple(sorted(one.groups)),
        terms=len(one.terms),
        words=_words(one),
    )


def _words(one: Dictionary) -> int:
    return len({t.text.lower() for t in one.terms})


def _list_one(attribute: str, format: str) -> int:
    from auditor.perturb import dictionaries

    one = dictionaries.neutral() if attribute == "neutral" else dictionaries.load(attribute)
    if format == "json":
        terms = [
            {
                "text": t.text,
                "group": t.group,
                "slot": t.slot,
                "pos": t.pos,
                "conditions": sorted(t.tags),
                "source": t.source,
            }
            for t in one.terms
        ]
        sys.stdout.write(json.dumps(terms, indent=2) + "\n")
        return 0
    for name, group in one.groups.items():
        words = ", ".join(dict.fromkeys(t.text for t in one.terms if t.group == name))
        say(f"{name} ({group.label}): {words}")
    return 0


@app.command("show")
def show(attribute: Annotated[str, typer.Argument(help="One attribute, or neutral.")]) -> int:
    """Print the file of one dictionary that comes with the tool, to copy from or to extend (extends: ATTRIBUTE)."""
    from auditor.core import data, yamlfile
    from auditor.perturb import dictionaries

    name = Path(attribute).stem
    if name != "neutral":
        dictionaries.load(name)  # says which there are
    sys.stdout.write(yamlfile.read_text(data.path("dictionaries", f"{name}.yaml")))
    return 0


@app.command("check")
def check(
    files: Annotated[
        list[str] | None, typer.Argument(help="[ATTRIBUTE=]FILE…; none checks those that come with the tool.")
    ] = None,
) -> int:
    """Check dictionaries: overlaps, missing slots, everyday words. Exit 1 where something is found."""
    from auditor.perturb import dictionaries

    chosen = (
        dictionaries.load_options(tuple(files)) if files else [dictionaries.load(n) for n in dictionaries.builtin()]
    )
    problems = dictionaries.check(chosen)
    say(*problems)
    if not problems:
        terms = sum(len(d.terms) for d in chosen)
        say(f"{plural(len(chosen), 'dictionary', 'dictionaries')}, {plural(terms, 'term')}: nothing found.")
    return 1 if problems else 0


@app.command("build")
def build(
    corpus: Annotated[list[Path], typer.Option(help="A public SBIC file (SBIC.v2.agg.*.csv); may be given again.")],
    out: Annotated[
        Path, typer.Option(help="The YAML file to write; with several attributes, NAME-ATTRIBUTE.yaml for each.")
    ],
    min_count: Annotated[int, typer.Option(min=1, help="Posts that must name a term.")] = 5,
    category: Annotated[
        str | None, typer.Option(help="One category of the corpus, e.g. race; without it, all.")
    ] = None,
) -> int:
    """Propose dictionary entries from SBIC: group terms by category, with counts, as typed entries for review."""
    from auditor.core.errors import ConfigError
    from auditor.perturb import dictionaries
    from auditor.perturb.dictionaries.corpus import count, propose, to_yaml

    _must_be_new(out)
    counts = count(corpus)
    known = [dictionaries.load(name) for name in dictionaries.builtin()]
    rows = propose(counts, known, min_count=min_count, category=category)
    if not rows:
        found = ", ".join(sorted(counts.by_category)) or "none"
        raise ConfigError(
            f"no term of {counts.posts} posts reaches --min-count {min_count}"
            + (f" in category {category!r}" if category else "")
            + f"; categories found: {found}."
        )
    names = ", ".join(path.name for path in corpus)
    texts = to_yaml(rows, counts, f"SBIC (Sap et al., 2020), {names}", min_count)
    files = {
        out if len(texts) == 1 else out.with_name(f"{out.stem}-{attribute}{out.suffix or '.yaml'}"): text
        for attribute, text in texts.items()
    }
    for file in files:
        _must_be_new(file)
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
    say(*counts.notes, to=sys.stderr)
    for name in sorted({row.category for row in rows}):
        own = [row for row in rows if row.category == name]
        new = sum(not row.known for row in own)
        say(f"{name:<12}{len(own):>5} terms, {new} of them in no dictionary yet")
    for row in rows:
        if row.also:
            others = ", ".join(f"{name} ({n})" for name, n in row.also)
            say(f"{row.text!r} is filed under {row.category} ({row.count}), and stands in {others} too")
    written = " ".join(common.quoted(file) for file in files)
    say(f"Written for review: {written}", f"Next: audit dictionary check {written}")
    return 0


def _must_be_new(file: Path) -> None:
    from auditor.core.errors import ConfigError

    if file.exists():
        raise ConfigError(f"{file} exists. Name another file with --out, so that no reviewed file is lost.")


@app.command("format")
def describe() -> int:
    """Describe dictionary files field by field."""
    from auditor.core import data

    sys.stdout.write(data.path("dictionaries", "README.md").read_text(encoding="utf-8"))
    return 0


def command(argv: list[str]) -> int:
    """Run the command and return its exit code; without a word after it, ``list``."""
    return invoke(app, "dictionary", argv or ["list"])
