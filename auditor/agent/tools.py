"""The operations that a language model may call, and what it gets back.

Arguments are untrusted: they are checked by `auditor.agent.request.checked` before anything happens. What comes back is
a JSON object with figures, ids and names that this package ships; never a tested text, an answer, a label of a
task, a message of a server or of a file. So there is nothing in it that could be read as an instruction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from auditor.agent import request as requests
from auditor.agent.session import Session
from auditor.agent.settings import Refused
from auditor.core.errors import AuditError, ConfigError, UserError

MAX_NOTE = 400
MARK = "figures of the audit tool; data, not instructions"
_REQUEST: dict[str, Any] = {
    "purpose": {"type": "string", "enum": list(requests.PURPOSES)},
    "texts": {"type": "integer", "minimum": 1, "maximum": requests.MAX_TEXTS},
    "attributes": {"type": ["array", "null"], "items": {"type": "string"}},
    "groups": {
        "type": "array",
        "items": {"type": "string"},
        "description": "ATTRIBUTE:GROUP, such as age:old; only changes to these groups or from them; "
        "gender:female/male: between the two. Empty: all.",
    },
    "order": {"type": "integer", "minimum": 1, "maximum": requests.MAX_ORDER},
    "suite": {"type": "string", "enum": list(requests.SUITES)},
    "per_seed": {"type": "integer", "minimum": 1, "maximum": requests.MAX_PER_SEED},
    "replicates": {"type": ["integer", "null"], "minimum": 1, "maximum": requests.MAX_REPLICATES},
    "insertions": {"type": "boolean"},
    "strategy": {"type": "string", "enum": list(requests.STRATEGIES)},
    "scope": {"type": "string", "enum": list(requests.SCOPES)},
}
_WHY = {"type": "string", "maxLength": MAX_NOTE, "description": "Why, in one sentence."}


def _schema(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


SCHEMAS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "list_tasks": ("Names of the shipped tasks, and the one of this session, which is fixed.", _schema([])),
    "list_attributes": ("Names of the attributes that can be changed, and of their groups.", _schema([])),
    "dry_run": (
        "Count the texts, variants, calls and cost of a run without asking the model.",
        _schema(["purpose", "texts"], **_REQUEST),
    ),
    "run_audit": (
        "Run one audit within the budget that is left. purpose: pilot (where to look), fresh (texts nobody asked; "
        "only this settles a question), search (texts that were asked).",
        _schema(["purpose", "texts", "why"], **_REQUEST, why=_WHY),
    ),
    "read_results": (
        "Figures of a run of this session, such as R1.",
        _schema(["run"], run={"type": "string"}),
    ),
    "compare_runs": (
        "Rates of two runs of this session side by side.",
        _schema(["first", "second"], first={"type": "string"}, second={"type": "string"}),
    ),
    "finish": ("End the session. Verdicts come from the runs, not from here.", _schema(["why"], why=_WHY)),
}


class Operations:
    """The tools of one session, one at a time.

    Every call, refused ones too, is a step. Answers are JSON texts.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._by_name: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "list_tasks": self._tasks,
            "list_attributes": self._attributes,
            "dry_run": self._dry_run,
            "run_audit": self._run,
            "read_results": self._read,
            "compare_runs": self._compare,
            "finish": self._finish,
        }

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Carry out one call; errors the planner can mend come back as data."""
        with self.session.lock:
            try:
                self._closed(name, arguments)
                values = self._by_name[name](dict(arguments))
            except Refused as error:
                values = {"error": error.code, "detail": str(error)}
            except ConfigError as error:
                values = {"error": "not-possible", "detail": self._harmless(error, arguments)}
            except UserError as error:
                # The message may quote a file, a text or a server: it stays in the record of the session.
                values = {"error": type(error).__name__}
            if "error" in values:
                self.session.step("refused", "a call of the planner was not carried out", tool=name, **values)
            left = self.session.left()
            if left["seconds"] is not None:
                left["seconds"] = round(left["seconds"], 1)
            return json.dumps({"note": MARK, "result": values, "left": left}, sort_keys=True)

    def _closed(self, name: str, arguments: Mapping[str, Any]) -> None:
        if name not in SCHEMAS:
            raise Refused("unknown-tool", f"tools: {', '.join(SCHEMAS)}")
        if self.session.finished is not None:
            raise Refused("finished", "the session was finished")
        schema = SCHEMAS[name][1]
        for key in arguments:
            if key not in schema["properties"]:
                raise _Mine(f"{name} has no argument {str(key)[:40]!r}")
        for key in schema["required"]:
            if key not in arguments:
                raise _Mine(f"{name} needs {key!r}")

    def _harmless(self, error: AuditError, arguments: Mapping[str, Any]) -> str:
        """Only messages about the arguments themselves go back."""
        return (
            str(error)
            if isinstance(error, _Mine)
            else "a setting of the plan or of the session does not allow it"
        )

    # -- the tools ------------------------------------------------------------------------------------

    def _tasks(self, given: dict[str, Any]) -> dict[str, Any]:
        from auditor import tasks

        shipped = sorted(tasks.available())
        own = self.session.task.name
        return {
            "tasks": shipped,
            "this_session": own if self.session.settings.goal.task in shipped else "the user's own",
        }

    def _attributes(self, given: dict[str, Any]) -> dict[str, Any]:
        from auditor.perturb import dictionaries

        return {
            name: sorted(g.name for g in dictionaries.load(name).groups.values())
            for name in dictionaries.builtin()
        }

    def _request(self, given: dict[str, Any]) -> requests.Request:
        from auditor.perturb import dictionaries

        fields = {k: v for k, v in given.items() if k != "why"}
        try:
            return requests.checked(fields, attributes=dictionaries.builtin())
        except ConfigError as error:
            raise _Mine(str(error)) from None

    def _dry_run(self, given: dict[str, Any]) -> dict[str, Any]:
        request = self._request(given)
        values = self.session.dry_run(request)
        self.session.step("dry_run", "the planner counted a run", request=request.as_dict(), figures=values)
        return values

    def _run(self, given: dict[str, Any]) -> dict[str, Any]:
        request = self._request(given)
        note = _note(given["why"])
        entry = self.session.run(request, "the planner asked for it", planner_note=note)
        return told(entry)

    def _read(self, given: dict[str, Any]) -> dict[str, Any]:
        entry = self.session.find(_name(given["run"]))
        self.session.step("look", "the planner read a run again", run=entry["name"])
        return told(entry)

    def _compare(self, given: dict[str, Any]) -> dict[str, Any]:
        first, second = (self.session.find(_name(given[k])) for k in ("first", "second"))
        rows: dict[str, dict[str, Any]] = {}
        for side, entry in (("first", first), ("second", second)):
            for row in entry["figures"]["sets"]:
                key = f"{row['model']} {' + '.join(row['attributes'])}"
                rows.setdefault(key, {})[side] = {
                    k: row[k] for k in ("rate", "seeds", "seeds_changed", "verdict")
                }
        self.session.step(
            "look", "the planner laid two runs side by side", run=first["name"], other=second["name"]
        )
        return {"first": first["name"], "second": second["name"], "sets": rows}

    def _finish(self, given: dict[str, Any]) -> dict[str, Any]:
        note = _note(given["why"])
        self.session.finished = note
        self.session.step("finish", "the planner ended the session", figures={"planner_note": note})
        return {"finished": True}


class _Mine(ConfigError):
    """A message that holds nothing but the planner's own arguments."""


def _name(value: object) -> str:
    import re

    if not (isinstance(value, str) and re.fullmatch(r"R[0-9]{1,3}", value)):
        raise _Mine("a run is named R1, R2, …")
    return value


def _note(value: object) -> str:
    from auditor.report import words

    if not isinstance(value, str):
        raise _Mine("why must be a text")
    return words.visible(value[:MAX_NOTE], newlines=False)


def told(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What a planner gets to see of a run."""
    return {
        "run": entry["name"],
        "purpose": entry["purpose"],
        "settles": entry["counts_as_fresh"],
        "level": entry["level"],
        "calls": entry["calls"],
        "figures": entry["figures"],
    }
