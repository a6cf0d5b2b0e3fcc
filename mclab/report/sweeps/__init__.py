"""Report what a search found. Only its trials (`mclab.plan.space_trials.Trials`) are read:

study.py         the study: axes by importance, counts, edges, failed trials
levels.py        an axis divided into levels, and the results of the trials at each level
tables.py        best trials, importances and marginals as columns; the text at the end of a command
trust.py         which trials importances are based on, and how far they can be trusted
write.py         sweep.md, trials.csv and .parquet, importances.csv, marginals.csv, front.csv
plots.py         importances, marginals, front; contour.py: the two strongest axes together
confirmation.py  the search compared with the grid around its best point (`--confirm`)
"""
