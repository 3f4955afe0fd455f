"""Checks that anyone can run on their own models, mutators and variants."""

from auditor.testing.conformance import (
    GATE_FIXTURES,
    MUTATOR_FIXTURES,
    PERSON_FIXTURES,
    Failure,
    GateFixture,
    Mutator,
    MutatorFixture,
    check_gate,
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
    "Failure",
    "GateFixture",
    "Mutator",
    "MutatorFixture",
    "assert_invariant",
    "check_gate",
    "check_mutator",
    "check_suite",
    "check_variant",
    "mutate",
    "mutate_subject",
]
