"""Memory Caching (arXiv 2602.24281): one file for each axis; `layer` alone composes them.

See docs/equations.md#caching.
"""
