"""Searches: Optuna by ask and tell on a study that any number of processes share. The only user of optuna.

command.py     from a search space to a finished study; report.py: what one command did
search.py      the loop: ask for trials, train what is not measured, tell the study
study.py       the shared study: a trial claimed once, finished, passed on; owner.py: who holds it
open_study.py  a study by its name
samplers.py    samplers, and a point of the space from one
pruning.py     which runs are stopped; results.py: from records to how a trial ended
trials.py      what is written beside a trial; Optuna's trials as ours
storage.py     where a study is kept, and asking it again; journal.py, postgres.py: the two places
importance.py  importances with resamples
cost.py        what a search costs, before it
"""
