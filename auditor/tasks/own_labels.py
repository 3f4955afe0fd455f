"""Tasks whose labels a user names: the plain prompt that is made for them, and prompts that name other labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auditor.core import reading
from auditor.core.errors import ConfigError, UnknownValue
from auditor.tasks.phrases import bare, normalise

LONGEST, MOST = 40, 12  # characters of an answer that may be a label, and how many labels are offered
OTHER = "OTHER"  # stands for labels that no answer shows
KEPT = ("seeds", "against", "subject", "irrelevant", "truncation", "temperature", "description")  # of the task below
# Lists of answers in an instruction: "one word, invite or reject", "one of: a, b or c", 'its value "a" or "b"', "Answer
# yes or no."
_ONE_OF = re.compile(
    r"\bone (?:word|label|of(?: these)?(?: words| labels)?) ?[:,] ?([^.;:]+?)(?:,? and nothing|[.;]|$)", re.IGNORECASE
)
_WITH = r"(?<!not )\b(?:value|holds|answer|reply|respond)(?: with| is| only| either)*:? "
_QUOTED = re.compile(_WITH + r'("[^"]{1,60}"(?:, ?"[^"]{1,60}")*,? or "[^"]{1,60}")', re.IGNORECASE)
_BARE = re.compile(_WITH + r"([\w-]+(?:, [\w-]+)*,? or [\w-]+)(?: and nothing|[.;,]|$)", re.IGNORECASE)
_BETWEEN = re.compile(r",\s*(?:or\s+)?|\s+or\s+")


def filled(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the fields of a task file with a plain prompt in place of the fields that it leaves out.

    Only a file that lists labels gets one. ``name`` is what the task is called where it does not say.
    """
    labels = raw.get("labels")
    if not isinstance(labels, list) or not labels or "turns" in raw:
        return dict(raw)
    several = raw.get("kind") == "multilabel"
    longest = max(len(str(one.get("name", "") if isinstance(one, dict) else one)) for one in labels)
    long = 16 + longest * (len(labels) if several else 1)
    texts: Any = reading.load_yaml(reading.shipped("embedded", "labels.yaml"))
    made = texts["several" if several else "one"]
    made["formats"]["plain"]["max_tokens"] = long
    made["formats"]["json"]["max_tokens"] = 32 + long
    called = re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-_")[:64] or "labels"
    return {"format": 1, "name": called, "kind": "classification", **made, **raw}


def relabelled(
    raw: Mapping[str, Any], labels: Sequence[str], favourable: str | None, *, builtin: bool
) -> dict[str, Any]:
    """Return the fields of a task file with other labels, and a plain prompt that asks for them.

    A file of the user's own and a conversation are refused: a prompt of their own asks for their labels.
    """
    task = raw.get("name", "the task")
    if labels:
        if not builtin:
            raise ConfigError(f"--labels: {task!r} is a task file of yours; write the labels there, under `labels`.")
        if "turns" in raw:
            raise ConfigError(f"--labels: the task {task!r} is a conversation, which says itself how it ends.")
        plain = raw["kind"] if raw.get("kind") in ("decision", "multilabel") else "classification"
        kept = {key: raw[key] for key in KEPT if key in raw}
        raw = filled({**kept, "kind": plain, "labels": list(labels)}, str(task))
    if favourable is not None:
        named = [str(one.get("name", "") if isinstance(one, dict) else one) for one in raw.get("labels") or ()]
        if not named:
            raise ConfigError(f"--favourable: the task {task!r} has no labels.")
        if favourable not in named:
            raise UnknownValue("--favourable", favourable, f"label of the task {task}", named)
        raw = {**raw, "favourable": favourable}
    return dict(raw)


def offered(said: Mapping[str, int], read: Iterable[str]) -> tuple[str, ...]:
    """Return the labels that answers show, where they look like labels of the model's own; else nothing.

    One label alone gets `OTHER` as its second. ``said`` counts the answers that could not be read, ``read`` are the
    labels that could.
    """
    words = {" ".join(text.split()): n for text, n in said.items()}
    plain = all(0 < len(w) <= LONGEST and w.isprintable() and not set(w) & set(",{}[]<>\"'\\") for w in words)
    labels = tuple(sorted({*words, *read}))
    if not words or not plain or len(labels) > MOST or 2 * len(words) > sum(words.values()):
        return ()
    return labels if len(labels) > 1 else (*labels, OTHER)


def foreign(instruction: str, names: Mapping[str, str]) -> str | None:
    """Return the first answer that ``instruction`` lists and that names no label; None where it lists none.

    ``names`` are the names of the labels in normal form (`auditor.tasks.phrases.normalise`).
    """
    text = " ".join(instruction.split())
    for pattern in (_ONE_OF, _QUOTED, _BARE):
        for match in pattern.finditer(text):
            words = [word.strip().strip("\"'") for word in _BETWEEN.split(match.group(1))]
            for word in words if len(words) > 1 else ():
                plain = normalise(word)
                if plain not in names and bare(plain) not in names:
                    return word
    return None
