"""Why a variant violates: hidden changes and minimal sets of attributes."""
