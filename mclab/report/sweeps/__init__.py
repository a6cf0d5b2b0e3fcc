"""What a search found, from its trials alone (`mclab.plan.space_trials.Trials`):

study.py         the study: axes by importance, counts, edges, troubles
levels.py        an axis cut into levels, and what the trials at each came to
tables.py        best trials, importances and marginals as columns; the text at the end of a command
trust.py         what importances rest on, and how far they can be trusted
write.py         sweep.md, trials.csv and .parquet, importances.csv, marginals.csv, front.csv
plots.py         importances, marginals, front; contour.py: the two strongest axes together
confirmation.py  the search beside the grid around its best point (`--confirm`)
"""
