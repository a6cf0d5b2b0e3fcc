"""Find and run code of the user's own, which a config names by its dotted path.

- `found`: finds a part and makes it;
- `kept`: undoes what the code changes in the process.
"""
