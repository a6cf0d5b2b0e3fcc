"""Searches with Optuna's ask and tell, on a study that any number of processes share. No other package imports optuna.

command.py     from a search space to a finished study; report.py: what one command did
search.py      the loop: claim trials, train the runs that are not stored yet, tell the study the results
study.py       the shared study: claim a trial once, finish it, pass it on; owner.py: which process holds a trial
open_study.py  open a study by its name, or create it
samplers.py    create samplers; draw a point of the space from one
pruning.py     which runs are stopped early; results.py: how a trial ended, from the records of its runs
trials.py      the attributes of trials in the study; convert Optuna's trials to ours
storage.py     where a study is stored, and retries while it does not answer; journal.py, postgres.py: the two kinds
importance.py  importances of the axes, with bootstrap intervals
cost.py        what a search costs, estimated before it starts
"""
