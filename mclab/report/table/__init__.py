"""Turn the records of a plan into the cells of its table. The modules, each based on those above it:

accuracy.py       from a record's scores: accuracy, the baseline without recall, whether a run learned, marks
row.py            one cell of the plan with its records
baseline.py       which row is the baseline of each row; the difference from it, its p, Holm's adjustment
planned_looks.py  differences and p for a sequential grid (seeds are added until every row has a verdict)
summary.py        all rows; every table, sentence and figure is made from it
columns.py        the columns as text (`test accuracy`, `difference`, `p`, `verdict`)
frames.py         the columns as numbers (table.csv, runs.csv); export.py: csv and parquet
effects.py        main effects and interactions of a whole grid
grids.py          any columns as plain text and as markdown; latex.py: any columns as LaTeX
tex.py            the table of cells as LaTeX, in the form that papers use
"""
