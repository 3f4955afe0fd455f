"""Tabular search on integer-coded rows: Themis (sampling), Aequitas (directed), SG (symbolic)."""
