"""Answers that somebody recorded, as a run: ``audit import``."""
