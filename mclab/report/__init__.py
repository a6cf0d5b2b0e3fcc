"""Plan and records to tables, words and plots. Never imports torch, triton or optuna."""
