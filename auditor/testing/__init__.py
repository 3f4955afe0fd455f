"""Checks that anyone can run on their own models, mutators and variants."""

from auditor.testing.conformance import (
    GATE_FIXTURES,
    MUTATOR_FIXTURES,
    PERSON_FIXTURES,
    SENTENCES,
    Failure,
    GateFixture,
    Mutator,
    MutatorFixture,
    Sentence,
    check_gate,
    check_kept,
    check_mutator,
    check_suite,
    check_variant,
    mutate,
    mutate_subject,
)
from auditor.testing.invariant import assert_invariant

__all__ = [
    "GATE_FIXTURES",
    "MUTATOR_FIXTURES",
    "PERSON_FIXTURES",
    "SENTENCES",
    "Failure",
    "GateFixture",
    "Mutator",
    "MutatorFixture",
    "Sentence",
    "assert_invariant",
    "check_gate",
    "check_kept",
    "check_mutator",
    "check_suite",
    "check_variant",
    "mutate",
    "mutate_subject",
]
