"""Techniques and rules that come in as plugins do."""
