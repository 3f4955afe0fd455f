"""Legal pages: one record mapped to one framework, and what only people can fill in."""
