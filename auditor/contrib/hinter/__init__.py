"""HInter: its suite, its figures, its section of the report."""
