"""English text: the only place, beside dictionaries and grammars, that assumes the language."""
