"""Tables of New York City Local Law 144 from recorded outcomes: reading, categories, tables, record."""
