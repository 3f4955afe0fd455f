"""Plans that are frozen before a run, and what a run did otherwise.

A frozen plan holds every setting, the hashes of everything that shapes the questions (task with its prompts,
texts or rows, dictionaries, grammar, parser, code), the models' fingerprints, what the run is expected to ask and
to show, when it was frozen and by whom, and a hash of itself. Plans of texts and of rows have one form; those of
rows say ``kind = "tabular"`` in their settings. The hash shows changes that were made without care; whoever wants
to can make the file anew. To show *when* a plan was there, put the file where a date is kept: a commit, a timestamp
service, a letter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from auditor._version import __version__
from auditor.core import reading
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.plan import Plan
from auditor.core.protocols import Observer
from auditor.core.reading import checked, from_json, from_toml
from auditor.core.record import code_sha256
from auditor.core.types import Progress, digest

KIND = "frozen-plan"
FORMAT = 1
TEXTS, ROWS = "texts", "tabular"
# Where results go, and how quickly, changes no answer. Leave to open a pickle is given anew for each run.
OPERATIONAL = frozenset(n for n, o in Plan.flags().items() if not o.shapes) | {"trust_pickle"}


class Frozen(BaseModel):
    """A plan that was frozen, of a run over texts or over rows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1]
    frozen_at: str
    frozen_by: str = ""
    reason: str = ""
    tool_version: str
    code_sha256: str
    settings: dict[str, Any] = Field(alias="plan")
    unset: tuple[str, ...] = ()  # of plans of 0.2, written as TOML, which has no missing values
    inputs: dict[str, Any]  # as in ``plan.json``
    fingerprints: dict[str, Any]
    expected: dict[str, Any] = {}  # cases, calls, and the effect that can be seen; empty in plans of earlier versions
    sha256: str
    document: Literal["frozen-plan"] = Field(alias="kind")
    source: str = Field("", exclude=True)  # the file's name

    @property
    def kind(self) -> str:
        """``texts``, or ``tabular`` for a search over rows."""
        return str(self.settings.get("kind", TEXTS))

    @property
    def plan(self) -> Plan:
        """The plan of a run over texts."""
        if self.kind != TEXTS:
            raise ConfigError(
                f"{self.source or 'this plan'} is a plan for rows of a table. Run it with: "
                f"audit tabular --plan {self.source or 'FILE'}"
            )
        return Plan.from_dict(self.settings)


def freeze(
    plan_record: Mapping[str, Any],
    *,
    by: str = "",
    reason: str = "",
    now: datetime | None = None,
    expected: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of a frozen plan."""
    settings = {k: v for k, v in plan_record["plan"].items() if k not in OPERATIONAL}
    body: dict[str, Any] = {
        "format": FORMAT,
        "kind": KIND,
        "frozen_at": (now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds"),
        "frozen_by": by,
        "reason": reason,
        "tool_version": __version__,
        "code_sha256": code_sha256()["sha256"],
        "plan": settings,
        "inputs": plan_record["inputs"],
        "fingerprints": dict(plan_record["fingerprints"]),
    }
    if expected:
        body["expected"] = expected
    return body | {"sha256": digest(plain(body))}


def plain(value: object) -> Any:
    """``value`` as JSON has it."""
    return json.loads(json.dumps(value, sort_keys=True, allow_nan=False))


def dumps(body: Mapping[str, object]) -> str:
    """Write a frozen plan as JSON."""
    return json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def load(path: Path) -> Frozen:
    """Read a frozen plan and check its hash."""
    try:
        raw = reading.text(path)
        body = from_json(raw) if path.suffix == ".json" else from_toml(raw)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: there is no such plan. Make one with: audit plan freeze --task NAME --output {path} "
            "(for a table: audit plan freeze tabular …)"
        ) from None
    except OSError as error:
        raise DataFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # both decoders' errors, and UnicodeDecodeError
        raise DataFileError(f"{path}: this is not a frozen plan: {error}") from None
    if not isinstance(body, dict) or body.get("kind") != KIND:
        raise DataFileError(f"{path}: this is not a frozen plan (kind = {KIND!r}). Make one with: audit plan freeze")
    if body.get("format") != FORMAT:
        raise DataFileError(f"{path}: format must be {FORMAT}; a newer version of this tool wrote this file")
    made = checked(Frozen, body, path)
    if made.kind not in (TEXTS, ROWS):
        raise DataFileError(f"{path}: plan: unknown kind {made.kind!r}; a newer version of this tool may know it")
    for name in sorted({*made.settings, *made.unset}):
        if made.kind == TEXTS and name not in Plan.settings():  # what rows have, `auditor.tables` knows
            raise DataFileError(f"{path}: plan: unknown setting {name!r}")
    if digest(plain({k: v for k, v in body.items() if k != "sha256"})) != made.sha256:
        raise DataFileError(
            f"{path}: the file was changed after it was frozen (its sha256 does not match). Freeze a new plan with: "
            "audit plan freeze; or add flags to --plan, which are recorded as deviations"
        )
    values = dict.fromkeys(made.unset) | made.settings
    if made.kind == TEXTS:
        try:
            values = Plan.from_dict(values).as_dict()
        except ConfigError as error:
            raise DataFileError(f"{path}: plan: {error}") from None
    return made.model_copy(update={"settings": values, "source": path.name})


def with_flags(frozen: Frozen, flags: Mapping[str, object]) -> Plan:
    """The plan to run: as frozen, but for flags that were given (None and empty ones were not)."""
    return frozen.plan.but(**{k: v for k, v in flags.items() if v is not None and v != ()})


def reference(frozen: Frozen, plan_record: Mapping[str, object]) -> dict[str, Any]:
    """What ``plan.json`` and the run record say about the frozen plan, with every deviation from it."""
    said = {name: getattr(frozen, name) for name in ("sha256", "frozen_at", "frozen_by", "reason")}
    expected, differ = dict(frozen.expected), deviations(frozen, plan_record)
    return {"file": frozen.source, **said, "expected": expected, "deviations": differ}


def tell_deviations(frozen: Frozen, plan_record: Mapping[str, object], observe: Observer) -> dict[str, Any]:
    """Tell each deviation from a frozen plan; returns what ``plan.json`` has of it."""
    about = reference(frozen, plan_record)
    for row in about["deviations"]:
        observe(Progress(phase="deviation from the frozen plan", done=0, message=str(row["what"])))
    return {"frozen": about}


def deviations(frozen: Frozen, plan_record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Settings, inputs, models and code that are not as frozen: ``{"what", "planned", "actual"}`` each."""
    rows = _settings(frozen.settings, plan_record["plan"])
    rows += _different("input: ", _flat(frozen.inputs), _flat(plan_record["inputs"]))
    rows += _different("model: ", frozen.fingerprints, plan_record["fingerprints"])
    before = {"code of the tool": frozen.code_sha256, "version of the tool": frozen.tool_version}
    now = {"code of the tool": code_sha256()["sha256"], "version of the tool": __version__}
    return rows + _different("", before, now)[::-1]


def _settings(planned: Mapping[str, object], actual: Mapping[str, object]) -> list[dict[str, Any]]:
    old, new = (_flat({k: v for k, v in s.items() if k not in OPERATIONAL}) for s in (planned, actual))
    # An empty list, or mapping, says no more than a setting that is not there.
    return _different("setting: ", *({k: v for k, v in s.items() if v not in ([], {})} for s in (old, new)))


def _different(prefix: str, planned: Mapping[str, Any], actual: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"what": f"{prefix}{name}", "planned": planned.get(name), "actual": actual.get(name)}
        for name in sorted({*planned, *actual})
        if plain(planned.get(name)) != plain(actual.get(name))
    ]


def _flat(value: object, path: str = "") -> dict[str, Any]:
    """Nested plain data by path; entries of a list go by their attribute or name where they have one."""
    if isinstance(value, Mapping):
        items = [(str(k), v) for k, v in value.items()]
    elif isinstance(value, list | tuple) and any(isinstance(v, Mapping) for v in value):
        items = [(_name(v, i), v) for i, v in enumerate(value)]
    else:
        return {path: value}
    flat: dict[str, Any] = {}
    for key, item in items:
        flat |= _flat(item, f"{path}.{key}" if path else key)
    return flat


def _name(value: object, index: int) -> str:
    names = [str(value[k]) for k in ("attribute", "name") if value.get(k)] if isinstance(value, Mapping) else []
    return "/".join(dict.fromkeys(names)) or str(index)


def of_run(stored: Mapping[str, Any], plan: Plan | Mapping[str, Any]) -> dict[str, Any] | None:
    """What the run record says about the frozen plan that ``plan.json`` names; None where there was none."""
    frozen = stored.get("frozen")
    if not frozen:
        return None
    if isinstance(plan, Plan):
        before = Plan.from_dict(stored["plan"]).as_dict()
        after: Mapping[str, Any] = plan.as_dict() | {"models": before["models"]}
    else:
        before, after = {name: stored.get(name) for name in plan}, plan
    later = [row | {"what": f"{row['what']} (when resumed)"} for row in _settings(before, after)]
    return {**frozen, "deviations": [*frozen["deviations"], *later]}
