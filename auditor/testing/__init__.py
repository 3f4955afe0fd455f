"""Checks that anyone can run on their own models, mutators and variants."""

from auditor.testing.fixtures import MUTATOR_FIXTURES, PERSON_FIXTURES, MutatorFixture
from auditor.testing.gates import GATE_FIXTURES, GateFixture, check_gate
from auditor.testing.invariant import assert_invariant
from auditor.testing.mutators import (
    Failure,
    Mutator,
    check_mutator,
    check_variant,
    mutate,
    mutate_subject,
    reversed_edits,
)
from auditor.testing.sentences import SENTENCES, Sentence, check_kept
from auditor.testing.suites import check_suite

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
    "reversed_edits",
]
