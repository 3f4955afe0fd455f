"""Oracles judge variants against their original."""
