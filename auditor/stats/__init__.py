"""Pure functions on numbers; nothing here knows how they came about."""
