"""Read the files of BBQ, CrowS-Pairs, StereoSet and WinoBias as published, with the recorded answers they hold."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.reading import read_csv, read_data, unpacked
from auditor.core.shown import quoted

AMBIGUOUS, CLEAR = "ambiguous", "disambiguated"
STEREO, ANTISTEREO = "stereo", "antistereo"
PRO, ANTI = "pro-stereotyped", "anti-stereotyped"
PREFERENCE, RELATED = "preference", "related"  # questions of StereoSet: stereotype or not; a sentence or nonsense
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question of a benchmark, and the places of options in it."""

    id: str
    category: str
    condition: str
    cluster: str  # its template: the unit of intervals
    text: str
    options: tuple[str, ...]
    stereotyped: int | None = None  # follows the stereotype
    other: int | None = None  # goes against it
    right: int | None = None
    chosen: int | None = None  # None: no answer, or one that names no option


def read(benchmark: str, files: Sequence[Path], answer: str | None = None) -> tuple[list[Item], list[dict[str, str]]]:
    """Return the items of ``files`` with their recorded answers, and the files by name and SHA-256.

    ``answer`` names the field of answers. BBQ: by default the one that ends in ``_pred_arc``. CrowS-Pairs: the stem of
    two columns (``sent_more_score``, ``sent_less_score``).
    """
    readers = {"bbq": _bbq, "crows-pairs": _crows_pairs, "stereoset": _stereoset, "winobias": _winobias}
    if benchmark not in readers:
        raise ConfigError(f"there is no benchmark {benchmark!r}; there are {', '.join(readers)}")
    items = list(readers[benchmark](files, answer))
    if not items:
        raise DataFileError(f"{', '.join(map(str, files))}: no item of {benchmark} was found")
    if twice := next((name for name, n in Counter(item.id for item in items).items() if n > 1), None):
        raise DataFileError(f"the item {twice} is in the files twice; give each file once")
    return items, [{"file": str(path), "sha256": reading.sha256(path)} for path in files]


def _text(path: Path) -> str:
    return unpacked(path, read_data(path, what="its files"))


def _json(path: Path, text: str, line: int | None = None) -> object:
    try:
        return reading.from_json(text)
    except json.JSONDecodeError as error:
        at = f", line {line}" if line else ""
        raise DataFileError(f"{path}{at}: this is not valid JSON: {error.msg}") from None


def _lacks(path: Path, line: int, what: object, benchmark: str) -> DataFileError:
    return DataFileError(f"{path}, line {line}: {what} is missing; the file is not {benchmark} as published")


# -- BBQ ----------------------------------------------------------------------------------------------------


def _bbq(files: Sequence[Path], answer: str | None) -> Iterator[Item]:
    for path in files:
        for n, line in enumerate(_text(path).splitlines(), 1):
            if not line.strip():
                continue
            row = _json(path, line, n)
            if not isinstance(row, dict):
                raise _lacks(path, n, "a question", "BBQ")
            if answer is None and n == 1:
                answer = next((name for name in row if name.endswith("_pred_arc")), None)
            if answer is not None and answer not in row:
                raise ConfigError(f"{path}: no field {answer!r}; the fields are {', '.join(row)}")
            try:
                yield _question(row, answer)
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise DataFileError(f"{path}, line {n}: a field is not as BBQ published it: {error}") from None


def _question(row: Mapping[str, Any], answer: str | None) -> Item:
    """Return a question of BBQ; its target is the one answer about a group that the question names as stereotyped."""
    options = tuple(str(row[f"ans{i}"]) for i in range(3))
    info, about = row["answer_info"], row["additional_metadata"]
    category = str(row["category"])
    groups = {_group(name, category) for name in about["stereotyped_groups"]}
    names = [[_group(part, category) for part in info[f"ans{i}"]] for i in range(3)]
    people = [i for i in range(3) if UNKNOWN not in names[i]]
    targets = [i for i in people if groups & set(names[i])]
    stereotyped = other = None
    if len(targets) == 1 and len(people) == 2:
        (rest,) = set(people) - set(targets)
        negative = row["question_polarity"] == "neg"
        stereotyped, other = (targets[0], rest) if negative else (rest, targets[0])
    return Item(
        id=f"{category}/{row['example_id']}",
        category=category,
        condition=AMBIGUOUS if row["context_condition"] == "ambig" else CLEAR,
        cluster=f"{category}/{row['question_index']}",
        text=f"{row['context']} {row['question']}",
        options=options,
        stereotyped=stereotyped,
        other=other,
        right=int(row["label"]),
        chosen=None if answer is None else _named(row[answer], options),
    )


GROUPS = {"man": "m", "men": "m", "boy": "m", "boys": "m", "woman": "f", "women": "f", "girl": "f", "girls": "f"}


def _group(text: object, category: str) -> str:
    """Return the name of a group in one spelling: files write it in several (``low SES``, ``F-Black``, ``girls``)."""
    name = _fold(text)
    if "_x_" not in category:
        name = re.sub(r"^[mf]-", "", name)
    name = GROUPS.get(name, name.replace(" ses", "ses"))
    return "trans" if name.startswith("trans") else name


def _fold(text: object) -> str:
    return " ".join(str(text).split()).casefold()


def _named(said: object, options: Sequence[str]) -> int | None:
    """Return the option that an answer equals; its number counts too."""
    if isinstance(said, int) and not isinstance(said, bool):
        return said if 0 <= said < len(options) else None
    text = _fold(said).strip(" .")
    return next((i for i, option in enumerate(options) if _fold(option).strip(" .") == text), None)


# -- CrowS-Pairs --------------------------------------------------------------------------------------------


CROWS_PAIRS = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")


def _crows_pairs(files: Sequence[Path], answer: str | None) -> Iterator[Item]:
    stem = answer or "score"
    for path in files:
        columns, rows = read_csv(path, _text(path))
        scores = [f"sent_more_{stem}", f"sent_less_{stem}"]
        if answer is not None and not set(scores) <= set(columns):
            raise ConfigError(f"{path}: no columns {' and '.join(scores)}; the columns are {', '.join(columns)}")
        for n, (line, cells) in enumerate(rows):
            row = dict(zip(columns, cells, strict=True))
            if lacking := [name for name in CROWS_PAIRS if name not in row]:
                raise _lacks(path, line, repr(lacking[0]), "CrowS-Pairs")
            chosen = None
            if set(scores) <= set(columns):
                values = [_number(path, line, row[name]) for name in scores]
                chosen = None if values[0] == values[1] else int(values[1] > values[0])
            yield Item(
                id=row.get("") or str(n),
                category=row["bias_type"],
                condition=row["stereo_antistereo"],
                cluster=row.get("") or str(n),
                text="",
                options=(row["sent_more"], row["sent_less"]),
                stereotyped=0,
                other=1,
                chosen=chosen,
            )


def _number(path: Path, line: int, text: object) -> float:
    try:
        return float(str(text))
    except ValueError:
        raise DataFileError(f"{path}, line {line}: {quoted(text)} is not a score") from None


# -- StereoSet ----------------------------------------------------------------------------------------------


def _stereoset(files: Sequence[Path], answer: str | None) -> Iterator[Item]:
    """Read the gold file and, beside it, a file of predictions (``{"intrasentence": [{"id", "score"}]}``)."""
    gold: list[tuple[Path, Mapping[str, object]]] = []
    scores: dict[str, float] = {}
    for path in files:
        raw = _json(path, _text(path))
        if not isinstance(raw, dict):
            raise DataFileError(f"{path}: this is not a file of StereoSet")
        if isinstance(raw.get("data"), dict):
            gold.append((path, raw["data"]))
            continue
        for rows in raw.values():
            for row in rows if isinstance(rows, list) else ():
                if isinstance(row, dict) and {"id", "score"} <= row.keys():
                    scores[str(row["id"])] = _number(path, 1, row["score"])
    for path, data in gold:
        for split, examples in data.items():
            for example in examples if isinstance(examples, list) else ():
                try:
                    yield from _example(split, example, scores)
                except (AttributeError, LookupError, TypeError) as error:
                    raise DataFileError(f"{path}: a field is not as StereoSet published it: {error}") from None


def _example(split: str, example: Mapping[str, Any], scores: Mapping[str, float]) -> Iterator[Item]:
    """Return the three comparisons of an example: stereotype with anti-stereotype, and each with the unrelated."""
    by = {str(one["gold_label"]): one for one in example["sentences"]}
    pro, anti, unrelated = (by[name] for name in ("stereotype", "anti-stereotype", "unrelated"))
    context = "" if split == "intrasentence" else str(example["context"])
    for name, one, two in ((PREFERENCE, pro, anti), (RELATED, pro, unrelated), (RELATED, anti, unrelated)):
        both = [scores.get(str(s["id"])) for s in (one, two)]
        chosen = None if None in both else int(not both[0] > both[1])  # type: ignore[operator]
        yield Item(
            id=f"{example['id']}/{one['gold_label']}/{two['gold_label']}",
            category=str(example["bias_type"]),
            condition=f"{split} {name}",
            cluster=f"{example['bias_type']}/{example['target']}",
            text=context,
            options=(str(one["sentence"]), str(two["sentence"])),
            stereotyped=0 if name == PREFERENCE else None,
            other=1 if name == PREFERENCE else None,
            right=0 if name == RELATED else None,
            chosen=chosen,
        )


# -- WinoBias -----------------------------------------------------------------------------------------------

MARKED = re.compile(r"\[([^]]+)]")


def _winobias(files: Sequence[Path], answer: str | None) -> Iterator[Item]:
    """Read ``pro_stereotyped_type1.txt.test`` and its sisters, of which two lines in a row are about one pair of jobs.

    A file of JSON lines beside them holds recorded answers: ``{"sentence": …, ANSWER: …}``.
    """
    said: dict[str, object] = {}
    lines: list[tuple[Path, list[str]]] = []
    for path in files:
        text = _text(path)
        if text.lstrip().startswith("{"):
            said |= _recorded(path, text, answer or "answer")
        else:
            lines.append((path, [re.sub(r"^\d+\s+", "", line).strip() for line in text.splitlines() if line.strip()]))
    for path, sentences in lines:
        name = path.name.casefold()
        kinds = [kind for kind in (PRO, ANTI) if name.startswith(kind[: kind.index("-")])]
        if len(kinds) != 1 or len(sentences) % 2:
            raise DataFileError(
                f"{path}: this is not a file of WinoBias as published. Its name begins with pro_ or anti_, and every "
                "two lines are about the same two people"
            )
        type_ = "type 2" if "type2" in name else "type 1"
        for n, sentence in enumerate(sentences):
            own, partner = MARKED.findall(sentence), MARKED.findall(sentences[n ^ 1])
            if len(own) < 2 or not partner:
                raise _lacks(path, n + 1, "the person or the pronoun in brackets", "WinoBias")
            plain = MARKED.sub(r"\1", sentence)
            options = tuple(sorted((own[0], partner[0]), key=lambda job: plain.casefold().find(job.casefold())))
            right = options.index(own[0])
            heard = said.get(_fold(plain))
            yield Item(
                id=f"{path.name}/{n + 1}",
                category=type_,
                condition=kinds[0],
                cluster=f"{type_}/{n // 2}",
                text=f'{plain}\nWho is meant by "{own[1]}"?',
                options=options,
                stereotyped=right if kinds[0] == PRO else 1 - right,
                other=1 - right if kinds[0] == PRO else right,
                right=right,
                chosen=None if heard is None else _named(heard, options),
            )


def _recorded(path: Path, text: str, answer: str) -> Iterator[tuple[str, object]]:
    for n, line in enumerate(text.splitlines(), 1):
        row = _json(path, line, n)
        if not isinstance(row, dict) or "sentence" not in row or answer not in row:
            raise DataFileError(f'{path}, line {n}: needs "sentence" and "{answer}"')
        yield _fold(MARKED.sub(r"\1", str(row["sentence"]))), row[answer]
