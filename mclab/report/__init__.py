"""Stored runs as tables, sentences, figures and pages. Reads plan and records, and nothing else.

stats.py        Student's t, paired test, Holm
sequential.py   planned looks at the p values: when a row is settled; power.py: power before the runs
seeds.py        how many seeds each cell of a sequential grid still needs
text.py         how values, numbers, names and lists are written
characters.py   a gate's weights as text, and characters that a terminal lacks
table/          from records to the cells of the table, as text, csv, parquet and LaTeX
prose/          verdicts, advice and notes under the table
plot/           the figures of a grid, a module for each kind
write.py        all files of a table; terminal.py: the table at the end of a command
paper/          a grid beside the published table that it repeats
sweeps/         tables, sentences and figures of a search
page/           one HTML page of a run folder
"""
