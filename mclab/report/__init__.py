"""Report stored runs as tables, sentences, figures and pages. Only the plan and the records are read.

stats.py        Student's t interval, paired test, Holm's adjustment
sequential.py   the sequential test: which rows are decided at each look; power.py: power before the runs
seeds.py        how many seeds each cell of a sequential grid needs
text.py         values, numbers, names and lists as text
characters.py   a gate's weights as text, and replacements for characters that a terminal lacks
table/          from records to the rows of the table, as text, csv, parquet and LaTeX
prose/          verdicts, advice and notes below the table
plot/           the figures of a grid, a module for each kind
write.py        all files of a table; terminal.py: the table at the end of a command
paper/          a grid compared with the published table that it reproduces
sweeps/         tables, sentences and figures of a search
page/           one HTML page of a run folder
"""
