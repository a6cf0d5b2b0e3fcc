"""Define the config of a run as frozen, strict models: keys, defaults, rules between keys, run id. Never imports torch.

run.py          the config of one run; task/ and model/: the keys of a task and of a model; model/rules.py: all memories
parse.py        from plain data to a checked run, and errors as messages; error.py: the error and its guesses
keys.py         every key with type, default and meaning; fields.py: types of keys; strict.py: the base of all models
ids.py          run id; versions.py: versions of formulas; baselines.py: values of keys that an old record does not name
lengths.py      keys that some sequences are too short for; warnings.py: settings that may not be meant
variants.py     `eval.task` and `train.task`; params.py: parameters, state size and multiply-adds by formula
own.py          checks the user's own parts without importing them; own_source.py: their source files
options.py      how a command trains (device, workers, ...); outcome.py: the result of a run; stored.py: a stored run
"""
