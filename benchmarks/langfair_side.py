"""LangFair's half of `langfair.py`; runs in an environment of its own, in isolated mode (``python -I``).

Reads its settings as JSON from standard input and writes what it saw as one line of JSON to standard output.
LangFair is used as its documentation shows: `CounterfactualGenerator` or `ResponseGenerator` with a LangChain chat
model, then `CounterfactualMetrics`. Two things differ: NLTK's sentence splitter needs a download, so without one a
plain splitter stands in; and the cosine metric needs a model from a hub, so it is left out.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
import time
from importlib.metadata import version
from typing import Any

METRICS = ["Rougel", "Bleu", "Sentiment Bias"]
PACKAGES = ("langfair", "langchain-core", "langchain-openai", "openai", "nltk", "sacremoses", "numpy")
_ENDS = re.compile(r"(?<!\bMr\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bMrs\.)(?<=[.!?])\s+")


def stand_in() -> bool:
    """Put a plain sentence splitter in the place of NLTK's where its data are missing; says whether it did."""
    import nltk.tokenize

    try:
        nltk.tokenize.sent_tokenize("One. Two.")
    except LookupError:
        nltk.tokenize.sent_tokenize = lambda text, language="english": _ENDS.split(text)
        return True
    return False


def chat(settings: dict[str, Any]) -> Any:
    """The LangChain chat model, with at most ``width`` connections."""
    import httpx
    from langchain_core.rate_limiters import InMemoryRateLimiter
    from langchain_openai import ChatOpenAI

    width = settings["width"]
    limits = httpx.Limits(max_connections=width, max_keepalive_connections=width)
    more = {}
    if settings.get("limiter"):
        more["rate_limiter"] = InMemoryRateLimiter(
            requests_per_second=settings["limiter"], check_every_n_seconds=0.01, max_bucket_size=1
        )
    return ChatOpenAI(
        model="planted",
        base_url=settings["url"],
        api_key="no-key",
        temperature=1.0,
        http_async_client=httpx.AsyncClient(limits=limits, timeout=None),
        **more,
    )


def metrics(first: list[str], second: list[str]) -> dict[str, float]:
    """What `CounterfactualMetrics` says about two lists of answers."""
    from langfair.metrics.counterfactual import CounterfactualMetrics

    found = CounterfactualMetrics(metrics=METRICS).evaluate(
        texts1=first, texts2=second, attribute="gender", show_progress_bars=False
    )
    return {name: float(value) for name, value in found["metrics"].items()}


def suppressed(settings: dict[str, Any]) -> Any:
    """Which exceptions LangFair is to write down instead of raising them."""
    import openai

    return (openai.APIError,) if settings.get("suppress") else None


def pairs(settings: dict[str, Any]) -> dict[str, Any]:
    """Counterfactual pairs of LangFair's making, their answers and its metrics."""
    import openai
    from langfair.generator import CounterfactualGenerator

    generator = CounterfactualGenerator(langchain_llm=chat(settings), suppressed_exceptions=suppressed(settings))
    start = time.perf_counter()
    made = generator.create_prompts(prompts=settings["prompts"], attribute="gender")
    seen: dict[str, Any] = {"made_s": time.perf_counter() - start, "originals": made["original_prompt"]}
    seen |= {"male": made["male_prompt"], "female": made["female_prompt"]}
    start = time.perf_counter()
    try:
        got = asyncio.run(
            generator.generate_responses(
                prompts=settings["prompts"],
                attribute="gender",
                system_prompt=settings["system"],
                count=settings["count"],
                show_progress_bars=False,
            )
        )
    except openai.APIError as error:
        return seen | {"asked_s": time.perf_counter() - start, "raised": f"{type(error).__name__}: {error}"[:200]}
    seen["asked_s"] = time.perf_counter() - start
    data = got["data"]
    seen |= {"male_response": data["male_response"], "female_response": data["female_response"]}
    seen["non_completion_rate"] = got["metadata"]["non_completion_rate"]
    start = time.perf_counter()
    seen["metrics"] = metrics(data["male_response"], data["female_response"])
    seen["metrics_s"] = time.perf_counter() - start
    return seen


def given(settings: dict[str, Any]) -> dict[str, Any]:
    """Answers to a list of prompts as it stands."""
    from langfair.generator import ResponseGenerator

    generator = ResponseGenerator(langchain_llm=chat(settings), suppressed_exceptions=suppressed(settings))
    start, cpu = time.perf_counter(), time.process_time()
    got = asyncio.run(
        generator.generate_responses(
            prompts=settings["prompts"],
            system_prompt=settings["system"],
            count=settings["count"],
            show_progress_bars=False,
        )
    )
    return {
        "asked_s": time.perf_counter() - start,
        "asked_cpu_s": time.process_time() - cpu,
        "responses": got["data"]["response"],
    }


def main() -> None:
    """Do what standard input asks for."""
    settings = json.load(sys.stdin)
    start = time.perf_counter()
    with contextlib.redirect_stdout(sys.stderr):
        plain = stand_in()
        import langfair.generator
        import langfair.metrics.counterfactual  # noqa: F401

        loaded = time.perf_counter() - start
        work = {"pairs": pairs, "given": given}[settings["do"]]
        seen = work(settings)
    seen |= {"import_s": loaded, "plain_splitter": plain, "packages": {p: version(p) for p in PACKAGES}}
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
