"""Suites make cases: an original and its counterfactual variants."""
