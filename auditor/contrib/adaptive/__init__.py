"""Directed search over texts: the suite, its section of the report."""
