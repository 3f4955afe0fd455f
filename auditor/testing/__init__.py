"""Checks that anyone can run: `assert_invariant` on a model, `check_suite` and `check_variant` on a suite."""

from auditor.testing.conformance import Failure, check_suite, check_variant
from auditor.testing.invariant import assert_invariant

__all__ = ["Failure", "assert_invariant", "check_suite", "check_variant"]
