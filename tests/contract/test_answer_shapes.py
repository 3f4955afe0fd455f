"""Answers in the shapes of today's providers: what is read in each, from one recorded reply in wire format."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import httpx
import pytest

from auditor import tasks
from auditor.core.errors import CallError
from auditor.core.types import Request
from auditor.models.attempts import definitive, failure
from auditor.models.http import HttpTemplate
from auditor.models.langchain import read
from auditor.models.openai import OpenAIChat
from auditor.models.transport import client

TASK = tasks.load("sentiment")
ASKED = Request(prompt=TASK.render("A fine film."), replicate=0, variant_id="v")
CALL = {"id": "c1", "type": "function", "function": {"name": "label", "arguments": '{"label": "positive"}'}}
SCORES = {"positive": 0.75, "negative": 0.25}


def chat(content: object, finish: str = "stop", logprobs: object = None, **message: object) -> dict[str, object]:
    """A chat completion, as the protocol of OpenAI has it."""
    made = {"role": "assistant", "content": content, **message}
    choice = {"index": 0, "finish_reason": finish, "message": made, "logprobs": logprobs}
    counts = {"prompt_tokens": 21, "completion_tokens": 3, "total_tokens": 24}
    return {"id": "x", "object": "chat.completion", "model": "m-1", "choices": [choice], "usage": counts}


def tokens(*written: tuple[str, dict[str, float]]) -> dict[str, object]:
    """The log-probabilities of tokens with these alternatives."""
    made = [
        {
            "token": text,
            "logprob": math.log(others[text]),
            "top_logprobs": [{"token": t, "logprob": math.log(p)} for t, p in others.items()],
        }
        for text, others in written
    ]
    return {"content": made, "refusal": None}


SUB_TOKENS = tokens(("pos", {"pos": 0.75, "neg": 0.25}), ("itive", {"itive": 1.0}))
THOUGHT = "The negative words are few."
# (HTTP status and body, what the task reads: a label, or the status of the answer, or the code of the error)
CHAT: dict[str, tuple[int, dict[str, object], str]] = {
    "text": (200, chat("positive"), "positive"),
    "reasoning_content": (200, chat("positive", reasoning_content=THOUGHT), "positive"),
    "reasoning": (200, chat("positive", reasoning=THOUGHT), "positive"),
    "think tags": (200, chat(f"<think>{THOUGHT}</think>\n\npositive"), "positive"),
    "reasoning alone": (200, chat(None, "length", reasoning_content=THOUGHT), "unparsed"),
    "parts": (200, chat([{"type": "text", "text": "posi"}, {"type": "text", "text": "tive"}]), "positive"),
    "parts with thinking": (
        200,
        chat(
            [
                {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
                {"type": "text", "text": "positive"},
            ]
        ),
        "positive",
    ),
    "null": (200, chat(None), "unparsed"),
    "refusal": (200, chat(None, refusal="I'm sorry, I can't help with that."), "refused"),
    "part with a refusal": (200, chat([{"type": "refusal", "refusal": "I cannot help with that."}]), "refused"),
    "filter by 200": (200, chat("posi", "content_filter"), "content-filtered"),
    "filter by 400": (
        400,
        {"error": {"code": "content_filter", "message": "The response was filtered", "status": 400, "innererror": {}}},
        "content-filtered",
    ),
    "calls of tools": (200, chat(None, "tool_calls", tool_calls=[CALL]), "unparsed"),
    "structured output": (200, chat('{"label": "positive"}'), "positive"),
    "cut off": (200, chat("I weigh", "length"), "unparsed"),
    "log-probabilities": (200, chat("positive", logprobs=tokens(("positive", SCORES))), "positive"),
    "log-probabilities of sub-tokens": (200, chat("positive", logprobs=SUB_TOKENS), "positive"),
    "context, OpenAI": (
        400,
        {"error": {"message": "Your input exceeds the limit.", "code": "context_length_exceeded", "param": "messages"}},
        "prompt-too-long",
    ),
    "context, vLLM": (
        400,
        {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, …", "code": 400},
        "prompt-too-long",
    ),
    "context, llama.cpp": (
        400,
        {"error": {"code": 400, "message": "request (9 tokens) exceeds the available context size (8 tokens)"}},
        "prompt-too-long",
    ),
}


def outcome(reply: object) -> str:
    """The label that the task reads, or why there is none."""
    if isinstance(reply, CallError):
        return reply.code
    answer = TASK.read(reply.text, "chat")  # type: ignore[attr-defined]
    return str(answer.value) if answer.status == "ok" else answer.status


def asked(model: Any, mock: httpx.MockTransport, prompt: Request = ASKED) -> Any:
    async def go() -> Any:
        if isinstance(model, OpenAIChat):
            from openai import AsyncOpenAI

            model._client = AsyncOpenAI(
                api_key="k", base_url="http://h/v1", max_retries=0, http_client=client(transport=mock)
            )
        else:
            model._client = client(transport=mock)
        try:
            return (await model.generate([prompt]))[0]
        finally:
            await model.aclose()

    return asyncio.run(go())


@pytest.mark.parametrize("shape", CHAT)
def test_chat_completions(shape: str) -> None:
    status, body, expected = CHAT[shape]
    mock = httpx.MockTransport(lambda request: httpx.Response(status, json=body))
    reply = asked(OpenAIChat("m", base_url="http://h/v1", task=TASK), mock)
    assert outcome(reply) == expected
    if isinstance(reply, CallError):
        assert definitive(failure("m", ASKED, reply.code, str(reply)))  # not asked again
        return
    assert (reply.usage.tokens_in, reply.usage.tokens_out, reply.model_reported) == (21, 3, "m-1")
    assert reply.scores == (pytest.approx(SCORES) if shape.startswith("log-prob") else None)
    assert reply.cut_off == (body["choices"][0]["finish_reason"] == "length")  # type: ignore[index]


RESPONSES = {
    "object": "response",
    "model": "m-1",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": THOUGHT}]},
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "positive", "annotations": []}],
        },
    ],
    "usage": {"input_tokens": 21, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 2}},
}


def test_the_responses_api_through_a_file(tmp_path: Path) -> None:
    file = tmp_path / "responses.yaml"
    file.write_text(
        'format: 1\nurl: http://h/v1/responses\nrequest: {model: m, input: "{{messages}}"}\n'
        "answer: output[-1].content[0].text\nmodel: model\n"
        "usage: {tokens_in: usage.input_tokens, tokens_out: usage.output_tokens}\n"
    )
    reply = asked(HttpTemplate(str(file)), httpx.MockTransport(lambda request: httpx.Response(200, json=RESPONSES)))
    assert (outcome(reply), reply.usage.tokens_in, reply.model_reported) == ("positive", 21, "m-1")


TEXT = {"type": "text", "text": "positive"}
THINKING = {"type": "thinking", "thinking": THOUGHT, "signature": "EqQB"}
# (content and response_metadata as the integration packages give them, what the task reads, cut off)
MESSAGES: dict[str, tuple[object, dict[str, object], str, bool]] = {
    "OpenAI, Responses API": (
        [{"type": "reasoning", "id": "rs_1", "summary": []}, {**TEXT, "annotations": [], "id": "msg_1"}],
        {"id": "resp_1", "object": "response", "status": "completed", "model_name": "m-1"},
        "positive",
        False,
    ),
    "Anthropic": ([THINKING, TEXT], {"stop_reason": "end_turn", "model_name": "m-1"}, "positive", False),
    "Anthropic, redacted thinking": (
        [{"type": "redacted_thinking", "data": "EmwK"}, TEXT],
        {"stop_reason": "end_turn", "model_name": "m-1"},
        "positive",
        False,
    ),
    "Anthropic, refusal": ([], {"stop_reason": "refusal", "model_name": "m-1"}, "content-filtered", False),
    "Anthropic, cut off": ([THINKING], {"stop_reason": "max_tokens", "model_name": "m-1"}, "unparsed", True),
    "Gemini": ("positive", {"finish_reason": "STOP", "model_name": "m-1", "safety_ratings": []}, "positive", False),
    "Gemini, parts": (
        [{"type": "thinking", "thinking": THOUGHT}, {**TEXT, "extras": {"signature": "CkQB"}}],
        {"finish_reason": "STOP", "model_name": "m-1"},
        "positive",
        False,
    ),
    "Gemini, safety": ("", {"finish_reason": "SAFETY", "model_name": "m-1"}, "content-filtered", False),
    "Gemini, blocked prompt": (
        "",
        {"prompt_feedback": {"block_reason": "PROHIBITED_CONTENT", "safety_ratings": []}, "model_name": "m-1"},
        "content-filtered",
        False,
    ),
    "Gemini, cut off": ("", {"finish_reason": "MAX_TOKENS", "model_name": "m-1"}, "unparsed", True),
    "Bedrock": (
        [{"type": "reasoning_content", "reasoning_content": {"text": THOUGHT, "signature": "EqQB"}}, TEXT],
        {"stopReason": "end_turn", "model_name": "m-1", "metrics": {"latencyMs": [9]}},
        "positive",
        False,
    ),
    "Bedrock, guardrail": (
        [{"type": "text", "text": "Sorry, I cannot answer."}],
        {"stopReason": "guardrail_intervened", "model_name": "m-1"},
        "content-filtered",
        False,
    ),
    "Bedrock, cut off": ([], {"stopReason": "max_tokens", "model_name": "m-1"}, "unparsed", True),
}


@pytest.mark.parametrize("shape", MESSAGES)
def test_messages_of_langchain(shape: str) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    content, facts, expected, cut_off = MESSAGES[shape]
    counts = {"input_tokens": 21, "output_tokens": 3, "total_tokens": 24}
    reply = read(messages.AIMessage(content=content, response_metadata=facts, usage_metadata=counts))
    assert outcome(reply) == expected
    if not isinstance(reply, CallError):
        assert (reply.usage.tokens_in, reply.model_reported, reply.cut_off) == (21, "m-1", cut_off)


@pytest.mark.parametrize(
    "told",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "ValidationException: Input is too long for requested model.",
    ],
)
def test_a_prompt_beyond_the_context_through_langchain(told: str) -> None:
    from auditor.models.transport import kind_of

    error = type("BadRequestError", (Exception,), {"status_code": 400})(told)
    assert kind_of(error)[0].code == "prompt-too-long"
