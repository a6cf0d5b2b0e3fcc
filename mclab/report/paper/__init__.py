"""A grid's results beside the published table that it repeats."""
