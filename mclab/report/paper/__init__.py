"""Compare a grid with the published table that it reproduces (`mclab reproduce`):

comparison.py  our figures and differences, and whether they agree with the published ones
text.py        tables and sentences
files.py       paper.md, .csv, .tex and .parquet
"""
