"""A loopback OpenAI server whose behaviour is planted, for `langfair.py`.

What it does with a text is a function of the text, of its seed and (for noise) of how often the text was asked: so
what a tool should have found is known. Each seed belongs to one arm:

========== =================================================================================================
biased     the answer turns round when the first gendered word of the text is a woman's
refusing   the same, and what it turns into is a refusal
grammar    the answer turns round when the text holds a broken possessive ("hers coat", "him eyes")
noisy      one call in five is answered the other way round, whoever the text is about
calm       always the same answer
========== =================================================================================================

In the world ``null`` the first two arms are calm, so that no difference between people is there to be found.
As a program it reads its settings as one line of JSON, prints its port, and serves until its input ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

ARMS = ("biased", "refusing", "grammar", "noisy", "calm")
SHARES = (0.12, 0.06, 0.12, 0.20, 0.50)
REFUSAL = "I'm sorry, but I can't help with that."

_WORD = re.compile(r"[a-z]+")


def words(text: str) -> list[str]:
    """Words of a text in lower case."""
    return _WORD.findall(text.lower())


# Written out here, so that neither tool's own list decides what counts as a gendered word.
FEMALE = frozenset(
    words(
        "she her hers herself woman women girl girls lady ladies gal gals female females mother mothers mom moms mum mama "
        "grandmother grandmothers grandma daughter daughters granddaughter sister sisters aunt aunts niece nieces wife wives "
        "girlfriend girlfriends girfriend bride widow actress actresses waitress waitresses queen queens princess heroine "
        "hostess nun nuns ms mrs"
    )
)
MALE = frozenset(
    words(
        "he him his himself man men boy boys gentleman gentlemen guy guys male males father fathers dad dads papa "
        "grandfather grandfathers grandpa son sons grandson brother brothers uncle uncles nephew nephews husband husbands "
        "boyfriend boyfriends groom widower actor actors waiter waiters king kings prince hero host monk monks mr"
    )
)
# After these words "hers" and "him" can be right; after any other word that stands beside them they are not.
AFTER = frozenset(
    words(
        "a about after again against alone alive all along among an and any anything are around as aside at away back be because "
        "before behind better beside both but by can come could cry crying did do does down each either else even everything "
        "feel first for forever from get go gone had has have here home how i if in instead into is it just know last laugh "
        "learn like look lie more much near never no not nothing now of off on once one only open opposite or otherwise out "
        "outside over play quietly read right she shut since sing sit smile so some something starts still swim talk than that the "
        "their then there they this through to today together tomorrow tonight too try twice two under until up wait walk "
        "turns was watch we well were what when where whether which while who why will wins with without work would "
        "yesterday you"
    )
)
_BROKEN = re.compile(r"\b(hers|him) ([a-z][a-z-]*)")


def first_group(text: str) -> str | None:
    """Whom the text names first."""
    for word in words(text):
        if word in FEMALE:
            return "female"
        if word in MALE:
            return "male"
    return None


def broken(text: str) -> list[str]:
    """Places where "hers" or "him" stands for "her" or "his"; a closed rule, so a floor."""
    return [found[0] for found in _BROKEN.finditer(text.lower()) if found[2].partition("-")[0] not in AFTER]


def arm_of(seed_id: str) -> str:
    """The arm of a seed, from its id alone."""
    at = int(hashlib.sha256(seed_id.encode()).hexdigest()[:8], 16) / 2**32
    for arm, share in zip(ARMS, SHARES, strict=True):
        if at < share:
            return arm
        at -= share
    return "calm"


def base_of(seed_id: str) -> str:
    """What the planted model thinks of a seed."""
    return ("negative", "positive")[int(hashlib.sha256(f"b{seed_id}".encode()).hexdigest(), 16) % 2]


@dataclass(kw_only=True)
class Seen:
    """What the server saw."""

    calls: int = 0
    answered: int = 0
    limited: int = 0
    blocked: int = 0
    most_in_flight: int = 0
    first_s: float | None = None
    last_s: float | None = None
    words_in: int = 0
    texts: Counter[str] = field(default_factory=Counter)


class Planted:
    """The model behind the server."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.latency_s: float = settings["latency_s"]
        self.null: bool = settings["world"] == "null"
        self.per_second: float | None = settings.get("per_second")
        self.blocked = frozenset(settings.get("blocked", ()))
        self.seeds = [(one["id"], self.signature(one["text"])) for one in settings["seeds"]]
        self.known: dict[str, str] = {}
        self.seen = Seen()
        self.in_flight = 0
        self.tokens, self.at = self.per_second or 0.0, time.monotonic()

    @staticmethod
    def signature(text: str) -> frozenset[str]:
        """What stays of a text when people in it are swapped."""
        return frozenset(w for w in words(text) if len(w) > 3 and w not in FEMALE and w not in MALE)

    def seed_of(self, text: str) -> str:
        """The seed that a text was made from; two seeds share a fifth of their words at most."""
        if text not in self.known:
            mine = self.signature(text)
            share, seed = max((len(mine & its) / len(mine | its or {""}), seed) for seed, its in self.seeds)
            self.known[text] = seed if share >= 0.3 else ""
        return self.known[text]

    def answer(self, text: str, asked: int) -> str:
        """What the model says to ``text`` when it is asked for the ``asked``-th time, from 1."""
        seed = self.seed_of(text)
        arm = arm_of(seed)
        says = base_of(seed)
        other = "positive" if says == "negative" else "negative"
        if arm in ("biased", "refusing") and not self.null and first_group(text) == "female":
            return other if arm == "biased" else REFUSAL
        if arm == "grammar" and broken(text):
            return other
        if arm == "noisy" and hashlib.sha256(f"{asked} {text}".encode()).digest()[0] < 51:
            return other
        return says

    def allowed(self) -> bool:
        """Whether a call is within the limit of calls per second (a bucket that holds one second of them)."""
        if self.per_second is None:
            return True
        now = time.monotonic()
        self.tokens = min(self.per_second, self.tokens + (now - self.at) * self.per_second)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True

    async def reply(self, body: bytes) -> tuple[int, dict[str, Any]]:
        """Status and JSON for one request."""
        now = time.monotonic()
        seen = self.seen
        seen.first_s = now if seen.first_s is None else seen.first_s
        seen.calls += 1
        self.in_flight += 1
        seen.most_in_flight = max(seen.most_in_flight, self.in_flight)
        try:
            messages = json.loads(body)["messages"]
            text = messages[-1]["content"].strip()
            if not self.allowed():
                seen.limited += 1
                return 429, {"error": {"message": "too many requests", "type": "rate_limit", "code": 429}}
            await asyncio.sleep(self.latency_s)
            if self.seed_of(text) in self.blocked:
                seen.blocked += 1
                return 400, {"error": {"message": "not allowed", "type": "invalid_request_error", "code": 400}}
            seen.texts[text] += 1
            seen.answered += 1
            size = sum(len(one["content"].split()) for one in messages)
            seen.words_in += size
            return 200, completion(self.answer(text, seen.texts[text]), size)
        finally:
            self.in_flight -= 1
            seen.last_s = time.monotonic()

    def stats(self) -> dict[str, Any]:
        """The counts as plain data; ``unknown`` are texts that no seed resembles."""
        unknown = [text for text in self.seen.texts if not self.seed_of(text)]
        found = asdict(self.seen) | {"texts": dict(self.seen.texts), "unknown": unknown}
        found["span_s"] = (self.seen.last_s or 0.0) - (self.seen.first_s or 0.0)
        return found


def completion(text: str, size: int) -> dict[str, Any]:
    """A chat completion; tokens are counted as words."""
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "planted",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {
            "prompt_tokens": size,
            "completion_tokens": len(text.split()),
            "total_tokens": size + len(text.split()),
        },
    }


async def serve(settings: Mapping[str, Any]) -> None:
    """Answer on a free port, whose number is printed, until standard input ends."""
    model = Planted(settings)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                low = head.lower()
                size = int(low.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
                body = await reader.readexactly(size)
                if head.startswith(b"GET"):
                    status, found = 200, model.stats()
                else:
                    status, found = await model.reply(body)
                data = json.dumps(found).encode()
                start = b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                writer.write(start % (status, len(data)) + data)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.stdin.readline())))
