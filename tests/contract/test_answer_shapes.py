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
from auditor.models.client import definitive, failure
from auditor.models.http import HttpTemplate
from auditor.models.langchain import read
from auditor.models.openai import OpenAIChat
from auditor.models.transport import client, kind_of

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
TEXT = {"type": "text", "text": "positive"}
THINKING = {"type": "thinking", "thinking": THOUGHT, "signature": "EqQB"}
# (body, what the task reads: a label, or the status of the answer, or the code of the error); an error comes with 400
CHAT: dict[str, tuple[dict[str, object], str]] = {
    "text": (chat("positive"), "positive"),
    "reasoning_content": (chat("positive", reasoning_content=THOUGHT), "positive"),
    "reasoning": (chat("positive", reasoning=THOUGHT), "positive"),
    "think tags": (chat(f"<think>{THOUGHT}</think>\n\npositive"), "positive"),
    "reasoning alone": (chat(None, "length", reasoning_content=THOUGHT), "unparsed"),
    "parts": (chat([{"type": "text", "text": "posi"}, {"type": "text", "text": "tive"}]), "positive"),
    "parts with thinking": (
        chat([{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}, TEXT]), "positive",
    ),
    "null": (chat(None), "unparsed"),
    "refusal": (chat(None, refusal="I'm sorry, I can't help with that."), "refused"),
    "part with a refusal": (chat([{"type": "refusal", "refusal": "I cannot help with that."}]), "refused"),
    "filter by 200": (chat("posi", "content_filter"), "content-filtered"),
    "filter by 400": (
        {"error": {"code": "content_filter", "message": "The response was filtered", "status": 400, "innererror": {}}},
        "content-filtered",
    ),
    "calls of tools": (chat(None, "tool_calls", tool_calls=[CALL]), "unparsed"),
    "structured output": (chat('{"label": "positive"}'), "positive"),
    "cut off": (chat("I weigh", "length"), "unparsed"),
    "log-probabilities": (chat("positive", logprobs=tokens(("positive", SCORES))), "positive"),
    "log-probabilities of sub-tokens": (chat("positive", logprobs=SUB_TOKENS), "positive"),
    "context, OpenAI": (
        {"error": {"message": "Your input exceeds the limit.", "code": "context_length_exceeded", "param": "messages"}},
        "prompt-too-long",
    ),
    "context, vLLM": (
        {"object": "error", "message": "This model's maximum context length is 4096 tokens. However, …", "code": 400},
        "prompt-too-long",
    ),
    "context, llama.cpp": (
        {"error": {"code": 400, "message": "request (9 tokens) exceeds the available context size (8 tokens)"}},
        "prompt-too-long",
    ),
}  # fmt: skip


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
    body, expected = CHAT[shape]
    mock = httpx.MockTransport(lambda request: httpx.Response(200 if "choices" in body else 400, json=body))
    reply = asked(OpenAIChat("m", base_url="http://h/v1", task=TASK), mock)
    assert outcome(reply) == expected
    if isinstance(reply, CallError):
        assert definitive(failure("m", ASKED, reply.code, str(reply)))  # not asked again
        return
    assert (reply.usage.tokens_in, reply.usage.tokens_out, reply.model_reported) == (21, 3, "m-1")
    assert reply.scores == (pytest.approx(SCORES) if shape.startswith("log-prob") else None)
    assert reply.cut_off == (body["choices"][0]["finish_reason"] == "length")  # type: ignore[index]


WRITTEN = {"type": "output_text", "text": "positive", "annotations": []}
RESPONSES = {
    "object": "response", "model": "m-1",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": THOUGHT}]},
        {"type": "message", "role": "assistant", "status": "completed", "content": [WRITTEN]},
    ],
    "usage": {"input_tokens": 21, "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 2}},
}  # fmt: skip


def test_the_responses_api_through_a_file(tmp_path: Path) -> None:
    file = tmp_path / "responses.yaml"
    file.write_text(
        'format: 1\nurl: http://h/v1/responses\nrequest: {model: m, input: "{{messages}}"}\n'
        "answer: output[-1].content[0].text\nmodel: model\n"
        "usage: {tokens_in: usage.input_tokens, tokens_out: usage.output_tokens}\n"
    )
    reply = asked(HttpTemplate(str(file)), httpx.MockTransport(lambda request: httpx.Response(200, json=RESPONSES)))
    assert (outcome(reply), reply.usage.tokens_in, reply.model_reported) == ("positive", 21, "m-1")


# (content and response_metadata as the integration packages give them, what the task reads)
MESSAGES: dict[str, tuple[object, dict[str, object], str]] = {
    "OpenAI, Responses API": (
        [{"type": "reasoning", "id": "rs_1", "summary": []}, {**TEXT, "annotations": [], "id": "msg_1"}],
        {"id": "resp_1", "object": "response", "status": "completed"},
        "positive",
    ),
    "Anthropic": ([THINKING, TEXT], {"stop_reason": "end_turn"}, "positive"),
    "Anthropic, redacted thinking": (
        [{"type": "redacted_thinking", "data": "EmwK"}, TEXT], {"stop_reason": "end_turn"}, "positive",
    ),
    "Anthropic, refusal": ([], {"stop_reason": "refusal"}, "content-filtered"),
    "Anthropic, cut off": ([THINKING], {"stop_reason": "max_tokens"}, "unparsed"),
    "Gemini": ("positive", {"finish_reason": "STOP", "safety_ratings": []}, "positive"),
    "Gemini, parts": (
        [{"type": "thinking", "thinking": THOUGHT}, {**TEXT, "extras": {"signature": "CkQB"}}],
        {"finish_reason": "STOP"},
        "positive",
    ),
    "Gemini, safety": ("", {"finish_reason": "SAFETY"}, "content-filtered"),
    "Gemini, blocked prompt": (
        "", {"prompt_feedback": {"block_reason": "PROHIBITED_CONTENT", "safety_ratings": []}}, "content-filtered",
    ),
    "Gemini, cut off": ("", {"finish_reason": "MAX_TOKENS"}, "unparsed"),
    "Bedrock": (
        [{"type": "reasoning_content", "reasoning_content": {"text": THOUGHT, "signature": "EqQB"}}, TEXT],
        {"stopReason": "end_turn", "metrics": {"latencyMs": [9]}},
        "positive",
    ),
    "Bedrock, guardrail": (
        [{"type": "text", "text": "Sorry, I cannot answer."}], {"stopReason": "guardrail_intervened"},
        "content-filtered",
    ),
    "Bedrock, cut off": ([], {"stopReason": "max_tokens"}, "unparsed"),
}  # fmt: skip


@pytest.mark.parametrize("shape", MESSAGES)
def test_messages_of_langchain(shape: str) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    content, facts, expected = MESSAGES[shape]
    counts = {"input_tokens": 21, "output_tokens": 3, "total_tokens": 24}
    reply = read(
        messages.AIMessage(content=content, response_metadata=facts | {"model_name": "m-1"}, usage_metadata=counts)
    )
    assert outcome(reply) == expected
    if not isinstance(reply, CallError):
        told = (reply.usage.tokens_in, reply.model_reported, reply.cut_off)
        assert told == (21, "m-1", shape.endswith("cut off"))


@pytest.mark.parametrize(
    "told",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "ValidationException: Input is too long for requested model.",
    ],
)
def test_a_prompt_beyond_the_context_through_langchain(told: str) -> None:
    error = type("BadRequestError", (Exception,), {"status_code": 400})(told)
    assert kind_of(error)[0].code == "prompt-too-long"
