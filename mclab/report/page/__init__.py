"""One self-contained HTML page of a run folder: the answer, tables, plots, configuration, provenance, downloads.

For callers:
    `grid.grid_page(plan, lookup, curve, source) -> bytes`: of a grid, and of a grid with a published table beside it.
    `sweep.sweep_page(found, source) -> bytes`: of a search.
"""
