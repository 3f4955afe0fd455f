"""Validity: whether a variant is a text that its original could have been."""
