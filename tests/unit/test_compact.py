"""What a run keeps of each variant: the same values as plain lists and dictionaries, in less memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.core.types import Verdict
from auditor.store.compact import ByVariant, IntMap, KeySet, OfCase, Places, Verdicts

NUMBERS = st.integers(0, 2**64 - 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_a_map_of_numbers_is_a_dictionary(pairs: list[tuple[int, int]]) -> None:
    found, plain = IntMap(bits=2), dict(pairs)
    for key, value in pairs:
        found[key] = value
    assert len(found) == len(plain)
    assert {key: found.get(key) for key in plain} == plain
    assert found.get(12345) == plain.get(12345)


def test_a_number_is_claimed_once_also_among_many() -> None:
    found, rng = IntMap(), Random(3)
    # 0 marks a free slot, and the others share the slot that they begin at.
    keys = [0, *(n << 40 for n in range(1, 500)), *(rng.getrandbits(64) | 1 for _ in range(70_000))]
    plain = {key: place for place, key in enumerate(keys)}
    for key, place in plain.items():
        assert found.claim(key, place) is None
        assert found.get(key) == place
    assert len(found) == len(plain) > 65_536
    assert [found.claim(key, 7) for key in plain] == list(plain.values())
    assert all(found.get(key) == place for key, place in plain.items())
    assert found.get(2) is None


def test_a_set_of_questions() -> None:
    known = KeySet([("ab" * 32, 0), ("ab" * 32, 1), ("not hexadecimal", 0)])
    assert len(known) == 3
    assert ("ab" * 32, 1) in known
    assert ("ab" * 32, 2) not in known
    assert known.missing([("ab" * 32, 2), ("ab" * 32, 2), ("ab" * 32, 0)]) == 1


IDS = st.sampled_from(["c1.o", "c1.v0", "c1.v1", "c1.v1.x", "c2.v0", "c1", "other", "c1.c1.v0"])


@settings(max_examples=50, deadline=None)
@given(st.lists(IDS, unique=True))
def test_values_by_variant(ids: list[str]) -> None:
    plain = {one: number for number, one in enumerate(ids)}
    found: ByVariant[int] = ByVariant()
    found.add("c1", ids, list(plain.values()))
    assert dict(found) == dict(OfCase("c1", ids, plain.values())) == plain
    for one in ("c1.o", "c1.v1.x", "c3.v0", "c1", ""):
        assert found.get(one) == plain.get(one)
        assert (one in found) == (one in plain)


def _verdict(rng: Random) -> Verdict:
    case = f"c{rng.randrange(3)}"
    return Verdict(
        case_id=case,
        variant_id=rng.choice((f"{case}.v{rng.randrange(4)}", "elsewhere")),
        order=rng.randrange(1, 3),
        attributes=("gender",),
        outcome=rng.choice(("pass", "violation")),
        hidden=rng.choice((None, True, False)),
        original_output="positive",
        distance=rng.choice((None, 0, 0.0, 1, 1.0)),
        model="m",
    )


def test_a_value_by_the_rest_of_an_id_needs_ids_that_are_made_of_the_case() -> None:
    made = OfCase("c", ["c.v0", "c.v1"], [1, 2])
    assert (made.at("v1"), made.at("v2"), made.at("c.v1", 9)) == (2, None, 9)
    assert OfCase("c", ["x", "y"], [1, 2]).at("x") is None


def test_verdicts_come_back_as_they_were() -> None:
    rng = Random(1)
    plain = [_verdict(rng) for _ in range(500)]
    kept = Verdicts(plain)
    assert list(kept) == plain
    assert [type(v.distance) for v in kept] == [type(v.distance) for v in plain]
    assert kept[3:5] == plain[3:5]
    assert kept[-1] == plain[-1]
    assert len(kept) == 500


def test_places_keep_the_order_put_in() -> None:
    places = Places()
    assert places.get("a") == []
    for offset, key in enumerate(["b", "a", "b", "c"]):
        places.add(key, offset)
    assert places.get("b") == [0, 2]
    places.add("b", 9)
    assert places.get("b") == [0, 2, 9]
    assert places.get("z") == []


def test_bytes_for_each_verdict() -> None:
    tracemalloc.start()
    try:
        kept, case = Verdicts(), ""
        for n in range(20_000):
            if n % 20 == 0:
                case = f"c{n:010d}"
            kept.append(
                Verdict(
                    case_id=case,
                    variant_id=f"{case}.v{n % 20}",
                    order=1,
                    attributes=("gender",),
                    outcome="pass",
                    original_output="positive",
                    variant_output="positive",
                    distance=0.0,
                    model="m",
                    format="bare",
                )
            )
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / len(kept) < 60  # three references, and its share of the case id


def test_a_client_finds_what_the_folder_has(tmp_path: Path) -> None:
    from auditor.core.types import Response
    from auditor.store.folder import RunFolder

    with RunFolder.create(tmp_path, {"task": "sentiment"}) as folder:
        answers = folder.answers("m")
        for n in range(3):
            folder.add_response(
                Response(
                    variant_id="v",
                    prompt_sha256="ab" * 32,
                    format="f",
                    replicate=n,
                    output=f"o{n}",
                    model="m",
                )
            )
        found = answers.get(("ab" * 32, 2))
        assert found is not None
        assert found.output == "o2"
        assert answers.get(("ab" * 32, 3)) is None
        assert len(answers) == 3
