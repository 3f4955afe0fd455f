"""The pipeline of an audit of texts: its parts, the loop over rounds, confirmation, dry run and replay."""
