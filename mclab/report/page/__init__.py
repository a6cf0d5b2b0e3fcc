"""Write one self-contained HTML page for a run folder (`mclab report`):

grid.py      the page of a grid, with the published table if the grid reproduces one sweep.py     the page of a search
settings.py  the blocks on the runs: keys, provenance html.py      the blocks of a page, and the page as HTML
(page.html, page.css, page.js)
"""
