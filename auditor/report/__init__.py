"""Reports of a run: terminal, HTML, JSON. They read the record and the evidence; they never call a model."""
