"""A grid beside the published table that it repeats (`mclab reproduce`):

comparison.py  our figures and differences, and whether they agree
text.py        tables and sentences
files.py       paper.md, .csv, .tex and .parquet
"""
