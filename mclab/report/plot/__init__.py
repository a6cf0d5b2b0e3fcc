"""The figures of a grid. `kinds.py` has them by name; a module for each kind.

`style.py`, `figure.py` and `layout.py` are what they share.
"""
