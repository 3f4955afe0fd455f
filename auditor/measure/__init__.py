"""From answers to claims: one table of observations, and everything that is computed from it."""
