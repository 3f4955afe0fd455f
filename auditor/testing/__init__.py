"""Checks that anyone can run on their own models, mutators and variants."""

from auditor.testing.fixtures import MUTATOR_FIXTURES, MutatorFixture
from auditor.testing.invariant import assert_invariant
from auditor.testing.mutators import Failure, Mutator, check_mutator, check_variant, mutate, reversed_edits
from auditor.testing.suites import check_suite

__all__ = [
    "MUTATOR_FIXTURES",
    "Failure",
    "Mutator",
    "MutatorFixture",
    "assert_invariant",
    "check_mutator",
    "check_suite",
    "check_variant",
    "mutate",
    "reversed_edits",
]
