"""One self-contained HTML page of a run folder (`mclab report`):

grid.py      of a grid, with its published table where it has one
sweep.py     of a search
settings.py  what the rows are: keys, provenance
html.py      what a page is made of, and the page as HTML (page.html, page.css, page.js)
"""
