"""What a run keeps of each prompt and answer: the same as plain dictionaries of lists, in less memory."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from auditor.store.index import Index, pair_number

NUMBERS = st.integers(1, 2**64 - 1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS) | st.tuples(st.integers(1, 5), NUMBERS)))
def test_an_index_is_a_dictionary_of_lists(pairs: list[tuple[int, int]]) -> None:
    index, plain = Index(), defaultdict[int, list[int]](list)
    for key, value in pairs:
        index.add(key, value)
        plain[key].append(value)
    assert len(index) == len(pairs)
    assert {key: index.get(key) for key in plain} == {key: sorted(values) for key, values in plain.items()}
    assert index.get(12345) == sorted(plain[12345])


def test_a_number_is_claimed_once_also_among_many() -> None:
    index, rng = Index(), Random(3)
    # 0 marks a free slot, and the others share the slot that they begin at.
    keys = [0, *(n << 40 for n in range(1, 500)), *(rng.getrandbits(64) | 2 for _ in range(70_000))]
    plain = {key: place for place, key in enumerate(keys)}
    for key, place in plain.items():
        assert index.claim(key, place) is None
        assert index.get(key) == [place]
    assert len(index) == len(plain) > 65_536
    assert [index.claim(key, 7) for key in plain] == list(plain.values())
    assert index.get(4) == []


def test_questions_have_numbers_of_their_own() -> None:
    pairs = [("ab" * 32, 0), ("ab" * 32, 1), ("cd" * 32, 0), ("not hexadecimal", 0)]
    assert len({pair_number(pair) for pair in pairs}) == 4


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
