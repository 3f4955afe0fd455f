"""List prices with dates, and offline token counts.

Prices age: every entry of ``auditor/embedded/prices.yaml`` has a date, and ``--price-in`` with
``--price-out`` overrides it. Tokens are counted without a tokenizer (none ships without tables that
must be downloaded): an estimate for planning, calibrated by the usage that servers report, and a bound
for the hard limit on cost.
"""

from __future__ import annotations

import json
import math
from datetime import date
from functools import lru_cache

import msgspec

from auditor.core import data, yamlfile
from auditor.core.errors import ConfigError, DataFileError
from auditor.core.protocols import Price as Price
from auditor.core.talk import calls_of
from auditor.core.types import Prompt, Usage

CHARS_PER_TOKEN = 3.5  # English prose has about 4; lower, so that plans err on the dear side
OVERHEAD_PER_MESSAGE = 16  # tokens that chat templates add around one message, generously


def given(price_in: float | None, price_out: float | None) -> Price | None:
    """The price that the user gave, or None.

    Raises
    ------
    ConfigError
        Only one of the two was given.
    """
    if price_in is None and price_out is None:
        return None
    if price_in is None or price_out is None:
        missing = "--price-in" if price_in is None else "--price-out"
        raise ConfigError(f"{missing} is missing: give both --price-in and --price-out, in USD per million tokens")
    return Price(input_usd=float(price_in), output_usd=float(price_out))


class _Listed(msgspec.Struct, forbid_unknown_fields=True):
    host: str
    model: str
    input_usd: float
    output_usd: float
    as_of: date


class _File(msgspec.Struct):
    note: str
    prices: list[_Listed]


@lru_cache(maxsize=1)
def table() -> dict[tuple[str, str], Price]:
    """``(host, model name)`` to price, from the embedded file."""
    path = data.path("embedded", "prices.yaml")
    try:
        file = msgspec.convert(yamlfile.load(path), _File, strict=False)
    except msgspec.ValidationError as error:
        raise DataFileError(f"{path.name}: {error}") from None
    return {
        (one.host, one.model): Price(
            input_usd=one.input_usd, output_usd=one.output_usd, as_of=one.as_of.isoformat(), source=file.note
        )
        for one in file.prices
    }


def lookup(name: str, host: str = "api.openai.com") -> Price | None:
    """The list price of ``name`` at ``host``, or None if the table does not have exactly this name.

    Names are never shortened: a dated snapshot may cost more than the name it starts with, and a server
    elsewhere that uses the same name sets its own price.
    """
    return table().get((host, name))


class TokenCounter:
    """Counts the tokens of prompts without a tokenizer.

    ``estimate`` starts at 3.5 characters per token and follows what the server reports; ``bound`` never
    falls below what byte-level tokenizers can produce: one token per byte, and a template around it.

    Examples
    --------
    >>> counter = TokenCounter()
    >>> counter.estimate(Prompt(format="plain", text="x" * 35)) >= 10
    True
    """

    def __init__(self) -> None:
        self._chars = 0
        self._tokens = 0

    @property
    def chars_per_token(self) -> float:
        """The ratio in use: the observed one, once at least 200 tokens were seen."""
        return self._chars / self._tokens if self._tokens >= 200 else CHARS_PER_TOKEN

    def estimate(self, prompt: Prompt) -> int:
        """Expected tokens of ``prompt``."""
        return math.ceil(_chars(prompt) / self.chars_per_token)

    @staticmethod
    def bound(prompt: Prompt) -> int:
        """Tokens that ``prompt`` cannot exceed with a byte-level tokenizer."""
        texts = _texts(prompt)
        return sum(len(t.encode("utf-8", "surrogatepass")) + OVERHEAD_PER_MESSAGE for t in texts) + OVERHEAD_PER_MESSAGE

    def observe(self, prompt: Prompt, usage: Usage) -> None:
        """Learn from what the server counted."""
        if usage.tokens_in > 0:
            self._chars += _chars(prompt)
            self._tokens += usage.tokens_in


def _texts(prompt: Prompt) -> list[str]:
    if prompt.messages is None:
        return [prompt.text or ""]
    calls = [c.name + c.arguments for c in calls_of(prompt.messages)]
    return [*(m.content for m in prompt.messages), *calls, *(json.dumps(t.plain()) for t in prompt.tools)]


def _chars(prompt: Prompt) -> int:
    return sum(map(len, _texts(prompt)))
