"""Write one self-contained HTML page for a run folder (`mclab report`):

grid.py      the page of a grid, with its published table where it has one
sweep.py     the page of a search
settings.py  the blocks on the runs: keys, provenance
html.py      the blocks of a page, and the page as HTML (page.html, page.css, page.js)
"""
