"""A search that goes where answers change also estimates rates: intervals hold them, whatever the search found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from auditor.contrib.adaptive.features import Floats, Ints, Odds
from auditor.contrib.adaptive.ledger import Chances
from auditor.measure.intervals import weighted_change, weighted_share

RUNS = 200
EACH = 20  # joint changes of a text
ROUNDS, FOUND, DRAWN = 25, 16, 8  # of a search; what a round asks


class Planted(NamedTuple):
    """Joint changes of texts: what each does to the answer, and how likely a search takes it to do anything."""

    text: Ints
    change: Ints  # of the favourable answer: −1, 0, 1
    way: Ints  # of the groups: 1 or −1
    likely: Floats


def plant(rng: np.random.Generator, *, texts: int, rate: float, alike: float, knows: float, net: float) -> Planted:
    """``alike``: how much the changes of a text agree; ``knows``: how well the search tells them apart."""
    text = np.repeat(np.arange(texts), EACH)
    own = rng.beta(rate * (1 - alike) / alike, (1 - rate) * (1 - alike) / alike, texts)[text]
    way = rng.choice([-1, 1], len(text))
    moved = rng.random(len(text)) < own
    change = np.where(moved, np.where(rng.random(len(text)) < 0.5 + net / 2, way, -way), 0)
    likely = np.clip(knows * moved + (1 - knows) * rng.beta(1, 20, len(text)), 1e-4, 1.0)
    return Planted(text, change, way, likely)


class Known:
    """Beliefs that do not change."""

    def __init__(self, planted: Planted) -> None:
        self._likely = planted.likely
        self.open = [True] * len(planted.text)

    def odds(self, live: Ints) -> Odds:
        return Odds(self._likely[live], 0.3 * self._likely[live])


def search(planted: Planted, seed: int) -> tuple[Ints, Floats]:
    """The joint changes that a search asked, the likeliest first, and what they stand for."""
    chances, known = Chances(seed), Known(planted)
    ranked = iter(np.argsort(-planted.likely, kind="stable").tolist())
    for _ in range(ROUNDS):
        chances.close()
        drawn = chances.draw(known, DRAWN)  # type: ignore[arg-type]
        for one in (*drawn, *(next(ranked) for _ in range(FOUND))):
            chances.ask(one, int(planted.text[one]), str(one))
    chances.close()
    stands = chances.stands()
    return np.array([int(name) for name in stands]), np.array([one.weight for one in stands.values()])


SETTINGS = {
    "common": {"texts": 120, "rate": 0.15, "alike": 0.1, "knows": 0.3, "net": 0.0},
    "texts that differ": {"texts": 120, "rate": 0.1, "alike": 0.5, "knows": 0.3, "net": 0.4},
    "rare": {"texts": 120, "rate": 0.01, "alike": 0.05, "knows": 0.5, "net": 0.0},
    "a search that knows nothing": {"texts": 120, "rate": 0.05, "alike": 0.2, "knows": 0.0, "net": 0.0},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_intervals_hold_the_rate_and_the_net_difference(setting: str) -> None:
    """Texts are drawn anew in each run: the interval is about texts like these."""
    rng = np.random.default_rng(5)
    options = SETTINGS[setting]
    held = {"share": 0, "net": 0}
    off: list[float] = []
    plain: list[float] = []
    for run in range(RUNS):
        planted = plant(rng, **options)  # type: ignore[arg-type]
        asked, weight = search(planted, run)
        text, change, way = planted.text[asked], planted.change[asked], planted.way[asked]
        share = weighted_share((change != 0).astype(float), weight, text)
        net = weighted_change((change * way).astype(float), weight, text, way)
        held["share"] += share.low <= options["rate"] <= share.high
        held["net"] += net.low <= options["rate"] * options["net"] <= net.high
        off.append(share.value - float((planted.change != 0).mean()))
        plain.append(float((change != 0).mean()) - float((planted.change != 0).mean()))
    # 95 %: fewer than 91 % of 200 come by chance in one of 100 tests.
    assert min(held.values()) >= 0.91 * RUNS
    assert abs(float(np.mean(off))) < 4 * float(np.std(off)) / RUNS**0.5
    if options["knows"]:
        assert float(np.mean(plain)) > 0.2 * options["rate"], "the share of what was asked is none of all"
