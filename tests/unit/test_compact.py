"""What a run keeps of each prompt and answer: the same as plain sets and dictionaries, in less memory."""

from __future__ import annotations

from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.store.compact import IntMap, KeySet, Places

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


def test_places_keep_the_order_put_in() -> None:
    places = Places()
    assert places.get("a") == []
    for offset, key in enumerate(["b", "a", "b", "c"]):
        places.add(key, offset)
    assert places.get("b") == [0, 2]
    places.add("b", 9)
    assert places.get("b") == [0, 2, 9]
    assert places.get("z") == []


def test_a_client_finds_what_the_folder_has(tmp_path: Path) -> None:
    from auditor.core.types import Response
    from auditor.store.folder import RunFolder

    with RunFolder.create(tmp_path, {"task": "sentiment"}) as folder:
        answers = folder.answers("m")
        for n in range(3):
            folder.add_response(
                Response(variant_id="v", prompt_sha256="ab" * 32, format="f", replicate=n, output=f"o{n}", model="m")
            )
        found = answers.get(("ab" * 32, 2))
        assert found is not None
        assert found.output == "o2"
        assert answers.get(("ab" * 32, 3)) is None
        assert len(answers) == 3
