"""ASTRAEA: which words, and which groups, stand out among many."""
