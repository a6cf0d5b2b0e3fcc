"""Searches: Optuna by ask and tell on a study that any number of processes share. The only user of optuna."""
