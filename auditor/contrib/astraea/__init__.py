"""ASTRAEA: which words stand out among many."""
