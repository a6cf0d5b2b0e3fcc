"""Code of the user's own, which a config names by its dotted path.

- `found`: finds a part of it and makes it;
- `kept`: undoes what it changes in the process.
"""
