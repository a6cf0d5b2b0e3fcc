"""From the records of a plan to the cells of its table, bottom up:

accuracy.py       what a record's scores say: accuracy, without recall, learned, marks
row.py            one cell of the plan with its records
baseline.py       which row is whose baseline; the difference, its p, Holm
planned_looks.py  the same for a grid whose seeds are added until every row is told
summary.py        all rows: what every table, sentence and figure is made from
columns.py        the columns as text (`test accuracy`, `difference`, `p`, `verdict`)
frames.py         the columns as numbers (table.csv, runs.csv); export.py: csv and parquet
effects.py        main effects and interactions of a whole grid
grids.py          any columns as plain text and markdown; latex.py: as LaTeX
tex.py            the table as a paper prints it
"""
