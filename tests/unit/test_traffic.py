"""Whole requests: people are changed in the messages that are chosen, and all else is sent as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auditor import audit, resume, tasks
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.plan import Plan
from auditor.core.types import Prompt, Request
from auditor.models.openai import OpenAIChat
from auditor.run import own_data
from tests.asking import json_lines

TOOLS = [{"type": "function", "function": {"name": "decide", "parameters": {"type": "object"}}}]
JOBS = ("nurse", "driver", "teacher", "cook", "clerk", "painter", "plumber", "pilot")


def requests(**more: Any) -> list[dict[str, Any]]:
    """The system message names a man who is nobody's business; the user's are about the applicant."""
    return [
        {
            "custom_id": f"r{n}",
            "label": "invite",
            "body": {
                "model": "logged-model",
                "temperature": 0.3,
                "tools": TOOLS,
                "messages": [
                    {"role": "system", "content": f"His Honour signed policy {n}. Decide."},
                    {"role": "user", "content": [{"type": "text", "text": f"She has been a {job} for {n + 2} years."}]},
                    {"role": "assistant", "content": "What else does he say?"},
                    {"role": "user", "content": "She left her job last year."},
                ],
                **more,
            },
        }
        for n, job in enumerate(JOBS)
    ]


def listener(seen: list[dict[str, Any]], answer: Callable[[str], str]) -> Callable[[str], str]:
    def model(text: str) -> str:
        body = json.loads(text)
        seen.append(body)
        contents = [message["content"] for message in body["messages"][1:]]
        return answer(" ".join(said if isinstance(said, str) else said[0]["text"] for said in contents))

    return model


def called(said: str) -> str:
    decision = json.dumps({"decision": "reject" if "She has" in said else "invite"})
    return json.dumps({"tool_calls": [{"function": {"name": "decide", "arguments": decision}}]})


def test_only_the_chosen_messages_change(tmp_path: Path) -> None:
    rows, seen = requests(), []
    for row in rows:  # neutral words in both messages, so that placebo edits are where words of gender are
        first, last = row["body"]["messages"][1]["content"][0], row["body"]["messages"][3]
        first["text"] += " The book and the coat came in the morning."
        last["content"] += " The film was good, and the car and the house are small."
    result = audit(
        "hiring",
        model=listener(seen, called),
        data=rows,
        attributes="gender",
        who="all",
        columns={"answer": "$.tool_calls[0].function.arguments.decision"},
        out=tmp_path,
    )
    changed = 0
    for body in seen:
        source = rows[int(body["messages"][0]["content"].split("policy ")[1].split(".")[0])]["body"]
        changed += body != source
        for n in (1, 3):  # what the user said may differ, nothing else
            body["messages"][n] = source["messages"][n]
        assert body == source
        assert list(body) == list(source)
    assert changed > len(rows)
    claim = next(c for c in result.record["claims"] if c["family"] == "net" and c["groups"] == ["female", "male"])
    assert claim["estimate"] == pytest.approx(-1.0)
    assert claim["texts"] == len(JOBS) == result.record["counts"]["seeds"]
    prompts = [json.loads(p.text) for v in result.verdicts for p in result.evidence.prompts(v.variant_id)]
    assert {body["messages"][1]["content"][0]["text"].split()[0] for body in prompts} >= {"He", "She"}
    assert result.record["performance"]["gold"]["given"] == len(JOBS)
    assert len(list(tmp_path.glob("data-*.jsonl"))) == 1  # what a program hands over


def test_roles_and_paths_choose_messages(tmp_path: Path) -> None:
    file = str(json_lines(tmp_path / "r.jsonl", requests()))
    for messages, expected in (
        ("", ["She has been a nurse for 2 years.", "She left her job last year."]),
        ("system", ["His Honour signed policy 0. Decide."]),
        ("$.messages[-1].content", ["She left her job last year."]),
        ("assistant,$.messages[0].content", ["His Honour signed policy 0. Decide.", "What else does he say?"]),
    ):
        columns = {"messages": messages} if messages else {}
        task, found = own_data.read_requests(Plan(task="hiring", data=file, columns=columns), tasks.load("hiring"))
        assert found[0].text.split("\n\n=====\n\n") == expected
        task.about(found[0].text)
        prompt = task.render(found[0].text)
        assert json.loads(prompt.text or "") == requests()[0]["body"]


def test_redaction_holds(tmp_path: Path) -> None:
    file = json_lines(tmp_path / "r.jsonl", requests())
    audit("hiring", model=lambda text: "invite", data=file, redact=True, attributes="gender", out=tmp_path / "runs")
    kept = [path.read_text(encoding="utf-8", errors="replace") for path in tmp_path.glob("runs/2*/*")]
    assert len(kept) > 5
    for text in kept:
        assert "His Honour" not in text
        assert "has been a" not in text


def test_a_cut_off_run_goes_on(tmp_path: Path) -> None:
    spec = f"exec:python {tmp_path / 'echo.py'}"
    (tmp_path / "echo.py").write_text(
        "import json, sys\nfor line in sys.stdin:\n"
        "    r = json.loads(line)\n"
        "    print(json.dumps({'id': r['id'], 'output': 'invite' if 'He has' in r['input'] else 'reject'}), flush=True)\n"
    )
    file = json_lines(tmp_path / "r.jsonl", requests())
    options: dict[str, Any] = {"model": spec, "data": file, "attributes": "gender", "who": "all", "full_plan": True}
    cut = audit("hiring", **options, max_calls=20, out=tmp_path / "runs")
    assert not cut.complete
    whole = resume(cut.path, limits={"max_calls": 9_999})
    assert whole.complete
    assert whole.record["claims"] == audit("hiring", **options).record["claims"]


def test_a_server_is_sent_the_request_but_for_the_model() -> None:
    body = requests()[0]["body"]
    chat = OpenAIChat("audited", base_url="http://localhost:1/v1", task=tasks.load("hiring"))
    prompt = Prompt(format="request", text=json.dumps(body))
    assert chat.body(Request(prompt=prompt, replicate=0, variant_id="v")) == body | {"model": "audited"}


@pytest.mark.parametrize(
    ("column", "path", "said"),
    [
        ("messages", "tool", "no request has a text in tool"),
        ("messages", "$.[", "is no JSON path"),
        ("answer", "$.[", "is no JSON path"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, column: str, path: str, said: str) -> None:
    file = str(json_lines(tmp_path / "r.jsonl", requests()))
    with pytest.raises((ConfigError, DataFileError), match=said):
        own_data.read_requests(Plan(task="hiring", data=file, columns={column: path}), tasks.load("hiring"))
    with pytest.raises(ConfigError, match="are for whole requests"):
        audit("hiring", model="vader", columns={"messages": "user"})


DEEP = '{"a": ' * 300 + "1" + "}" * 300


def test_an_answer_that_is_nested_without_end_is_one_that_cannot_be_read(tmp_path: Path) -> None:
    file = str(json_lines(tmp_path / "r.jsonl", requests()))
    task, _ = own_data.read_requests(
        Plan(task="hiring", data=file, columns={"answer": "$..decision"}), tasks.load("hiring")
    )
    for output in ("[" * 100_000, json.dumps({"tool_calls": [{"function": {"arguments": DEEP}}]})):
        assert task.read(output).status == "unparsed"
    json_lines(tmp_path / "r.jsonl", [requests()[0], requests(x=json.loads(DEEP))[1]])
    with pytest.raises(DataFileError, match="line 2: not JSON: fields too deep inside each other"):
        own_data.read_requests(Plan(task="hiring", data=file), tasks.load("hiring"))


HUMAN = {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "He is kind."}}
ROLE = {"role": "user", "content": "He is kind."}


@pytest.mark.parametrize(
    ("outside", "messages", "columns"),
    [*((name, [ROLE], {}) for name in own_data.WITHIN), ("inputs", [[HUMAN]], {"messages": "$..content"})],
)
def test_logs_name_the_request_otherwise(
    outside: str, messages: list[Any], columns: dict[str, str], tmp_path: Path
) -> None:
    file = str(json_lines(tmp_path / "r.jsonl", [{outside: {"messages": messages}, "id": "one"}]))
    assert own_data.is_traffic(file)
    _, told = own_data.read_requests(Plan(task="sentiment", data=file, columns=columns), tasks.load("sentiment"))
    assert [(one.id, one.text) for one in told.seeds] == [("one", "He is kind.")]
