"""Each option of a plan is written once, and means the same wherever it is given."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import cli_reference
import msgspec
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from auditor import audit
from auditor.agent.tools import DryRun, asked
from auditor.agent.values import Request
from auditor.cli.frame import built, takes
from auditor.core.errors import ConfigError
from auditor.core.options import PlanModel, members
from auditor.core.plan import Plan, resolve
from auditor.run import audit as run_audit
from auditor.run import freeze
from auditor.run.preparation import plan_of
from auditor.tables.tabular_plan import MethodOptions, TabularPlan
from tests.contract.sources import trees

PLANS = (Plan, TabularPlan, MethodOptions)
FLAGS = sorted({option.flag for plan in PLANS for option in plan.flags().values()})
MANY = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FEW = settings(MANY, max_examples=3)
WORD = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters=",;:=/"), min_size=1)
TEXT = WORD.map(lambda word: f"a {word}")
SPECIAL: Mapping[str, st.SearchStrategy[Any]] = {
    "base_url": st.sampled_from(["http://localhost:8000/v1", "https://example.org/x"]),
    "groups": st.lists(st.sampled_from(["age:old", "gender:female", "gender:female/male"]), min_size=1),
    "reference": st.sampled_from(["bls", "race:white", "race:white,gender:male"]),
    "tolerance": st.lists(st.floats(0, 1), min_size=1),
    "price": st.lists(st.floats(0, 1e9), min_size=2, max_size=2),
    "columns": st.dictionaries(st.sampled_from(["text", "label", "id", "source"]), WORD, min_size=1),
    "jobs": st.sampled_from(["2", "ray", "ray:3"]),
    "judge": st.just(["openai:judge"]),
    "delta": st.floats(0.001, 0.999) | st.sampled_from([2.0, 5.5]),
    "fail_on": st.sampled_from(["shown", "failed > 5%", "hidden > 0"]),
    "suite": st.sampled_from(["mutation", "grammar"]),
    "until_decided": st.just(True),
    "gate": st.sampled_from(["constructs", "dependency"]),
    "oracle": st.sampled_from(["label", "probability"]),
    "per_seed": st.integers(0, 100),
    "server": st.lists(st.sampled_from(["temperature=none", "vader max-tokens=9", "vader timeout=2.5"]), min_size=1),
    "suite_options": st.sampled_from([["grammar=sentiment"], ["grammar=sentiment", "generation=rand"]]),
}


SCHEMAS = {plan: plan.model_json_schema()["properties"] for plan in PLANS}


DECLARE = {"Option", *(f"{room}{kind}" for room in ("", "frame.") for kind in ("flag", "file", "switch"))}


def test_every_option_is_written_once() -> None:
    calls = [node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [(call.func, arg.value) for call in calls for arg in call.args if isinstance(arg, ast.Constant)]
    written = [value for function, value in named if value in FLAGS and ast.unparse(function) in DECLARE]
    assert {flag: written.count(flag) for flag in FLAGS} == dict.fromkeys(FLAGS, 1)


def choices(annotation: object) -> tuple[str, ...]:
    """The words that a field or its entries may have; empty where any may be given."""
    kinds = {get_origin(one): get_args(one) for one in members(annotation)}
    return choices(kinds[tuple][0]) if tuple in kinds else tuple(str(word) for word in kinds.get(Literal, ()) if word)


def values_of(plan: type[PlanModel], name: str) -> st.SearchStrategy[Any]:
    """Values of one field, other than None."""
    if name in SPECIAL:
        return SPECIAL[name]
    info = plan.settings()[name]
    if words := choices(info.annotation):
        one = st.sampled_from(words)
        return st.lists(one, min_size=1, unique=True) if isinstance(info.default, tuple) else one
    described = SCHEMAS[plan][info.alias or name]
    kinds = {form["type"]: form for form in described.get("anyOf", [described]) if form["type"] != "null"}
    ((kind, form),) = kinds.items()
    return {
        "boolean": st.booleans(),
        "integer": st.integers(form.get("minimum"), min(form.get("maximum", 10**6), 10**6)),
        "number": st.floats(form.get("minimum", 0), 1e9),
        "string": TEXT,
        "array": st.lists(WORD, min_size=1),
    }[kind]


@st.composite
def plans(draw: Callable[..., Any], most: int = 8) -> dict[str, Any]:
    """Some settings that go together."""
    chosen: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from(list(Plan.settings())), max_size=most, unique=True)):
        further = {name: draw(values_of(Plan, name))}
        try:
            Plan.of(chosen | further)
        except ConfigError:
            continue
        chosen |= further
    return chosen


def arguments(plan: type[PlanModel], values: Mapping[str, Any]) -> list[str]:
    """The command line that sets ``values``."""
    out: list[str] = []
    for name, value in values.items():
        option = plan.flags()[name]
        flag = plan.flag(name)
        if option.off:
            out += [] if value else [flag]
        elif isinstance(value, bool):
            yes, _, no = option.flag.partition("/")
            out += [yes] if value else [no] if no else []
        elif isinstance(value, dict):
            out += [f"{flag}={key}={one}" for key, one in value.items()]
        elif isinstance(value, list):
            out += [f"{flag}={one}" for one in value] if option.repeated else [f"{flag}={','.join(map(str, value))}"]
        else:
            out.append(f"{flag}={value}")
    return out


def typed(command: str, *plans: type[PlanModel]) -> Callable[[list[str]], dict[str, object]]:
    """What ``command`` hands on of a command line."""
    seen = []

    @takes(command, *plans)
    def run(**options: object) -> int:
        seen.append(options)
        return 0

    made = built(run, command)

    def parse(argv: list[str]) -> dict[str, object]:
        made.main(args=argv, standalone_mode=False)
        return seen.pop()

    return parse


RUN = typed("run", Plan)
ROWS = typed("tabular", TabularPlan, MethodOptions)


def of_toml(values: Mapping[str, Any], folder: Path) -> Plan:
    path = folder / "audit.toml"
    path.write_text(tomli_w.dumps({Plan.key(name): value for name, value in values.items()}), encoding="utf-8")
    return resolve({}, path)


def of_python(values: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> Plan:
    seen: list[Plan] = []

    async def keep(plan: Plan, **more: object) -> None:
        seen.append(plan)

    monkeypatch.setattr(run_audit, "run_plan", keep)
    audit(**{"model" if name == "models" else name: value for name, value in values.items()})
    return seen.pop()


def frozen(plan: Plan, folder: Path) -> Plan:
    path = folder / "plan.json"
    body = freeze.freeze({"plan": plan.as_dict(), "inputs": {}, "fingerprints": {}})
    path.write_text(freeze.dumps(body), encoding="utf-8")
    return freeze.load(path).plan


def test_the_commands_of_a_run_take_every_option_that_it_may() -> None:
    assert set(Plan.flags("run")) == set(Plan.settings())
    assert set(Plan.flags("plan freeze")) >= {n for n, o in Plan.flags().items() if o.shapes}
    assert set(TabularPlan.flags("tabular")) == set(TabularPlan.settings())
    assert set(TabularPlan.flags("resume")) == set(Plan.flags("resume")) - {"anyway"}  # rows have no control
    assert set(inspect.signature(audit).parameters) == set(Plan.settings()) - {"models"} | {"model", "observe"}


@pytest.mark.parametrize("name", Plan.settings())
@FEW
@given(data=st.data())
def test_a_setting_is_the_same_from_everywhere(
    name: str, data: st.DataObject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_it = {
        "protocol": {"suite": "grammar"}, "suite_options": {"suite": "grammar"}, "tolerance": {"oracle": "probability"},
        "reference": {"oracle": "probability", "suite": "grammar"},
    }.get(name, {})  # fmt: skip
    values = {name: data.draw(values_of(Plan, name)), "models": ["vader"]} | with_it
    if name == "models":
        values["models"] = data.draw(values_of(Plan, name))
    plan = Plan.of(values)
    assert Plan.of(RUN(arguments(Plan, values))) == plan
    assert of_toml(values, tmp_path) == plan
    assert of_python(values, monkeypatch) == plan
    kept = {n: getattr(plan, n) for n, option in Plan.flags().items() if option.shapes}
    assert frozen(plan, tmp_path) == Plan(**kept)
    assert Plan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan


@MANY
@given(values=plans())
def test_a_plan_survives_every_form(values: dict[str, Any], tmp_path: Path) -> None:
    plan = Plan.of(RUN(arguments(Plan, values)))
    file = tmp_path / "audit.toml"
    whole = {n: 0 if n == "per_seed" and v is None else v for n, v in plan.as_dict().items()}
    kept = {Plan.key(name): value for name, value in whole.items() if value not in (None, [])}
    file.write_text(tomli_w.dumps(kept), encoding="utf-8")
    of_file = resolve({}, file)
    assert of_file == plan
    assert Plan.from_dict(json.loads(json.dumps(of_file.as_dict()))) == plan == Plan.of(values)


@pytest.mark.parametrize("name", TabularPlan.settings())
@FEW
@given(data=st.data())
def test_a_setting_of_rows_survives(name: str, data: st.DataObject) -> None:
    if name == "options":
        plan = TabularPlan(model="m", options={"global_n": 5, "trials": 0})
        told = ROWS(["--model", "m", "--set", "global-n=5", "--set", "trials=0"])
    else:
        values = {"model": "m"} | {name: data.draw(values_of(TabularPlan, name))}
        told = ROWS(arguments(TabularPlan, values))
        plan = TabularPlan.model_validate(values)
    assert TabularPlan.model_validate(told) == plan
    assert TabularPlan.from_dict(json.loads(json.dumps(plan.as_dict()))) == plan


def test_a_run_that_goes_on_changes_only_what_may(tmp_path: Path) -> None:
    done = audit("sentiment", model="vader", data=["My aunt sang."], attributes="gender", order=1, out=tmp_path)
    assert done.path is not None
    with pytest.raises(ConfigError, match="--order cannot change when a run goes on"):
        run_audit.resume(done.path, limits={"order": 2})
    stored = json.loads((done.path / "plan.json").read_text(encoding="utf-8"))["plan"]
    assert Plan.from_dict(stored) == plan_of(done.record["spec"]).but(models=stored["models"])


def test_what_a_planner_may_ask_for_is_a_part_of_a_plan() -> None:
    fields = {f.name: f for f in msgspec.structs.fields(Request) if f.name not in ("purpose", "texts")}
    assert set(fields) <= set(Plan.settings())
    widest = {"order": 4, "per_seed": 32, "replicates": 10}
    for name in fields:
        for value in choices(Plan.settings()[name].annotation) or [widest.get(name)]:
            if value is not None:
                request = asked(DryRun, "dry_run", {"purpose": "pilot", "texts": 5, name: value}).checked()
                assert getattr(Plan(**{name: getattr(request, name)}), name) == value


def test_every_option_is_in_the_reference() -> None:
    texts, tables = cli_reference.commands(), cli_reference.settings(*PLANS)
    for plan in PLANS:
        for name, option in plan.flags().items():
            for command in option.commands:
                assert cli_reference.options(texts[command]) >= set(option.flag.split("/")), (command, option.flag)
            assert f"| `{option.flag}` " in tables, name
