"""Code of the user's own, that a config names by its dotted path: found, made, and kept from changing the process."""
