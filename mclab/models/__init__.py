"""Language models of R replicas: embedding, blocks of mixer and MLP, tied head.

- `lm`, `block`: the model around the mixers.
- `mixers`: every mixer by the name under `model.mixer.name`. They are `memory` (projections around a cached memory),
  `attention`, `hybrid` (both in one layer), `log_linear`, `conv`, and `module` (one of the user's own).
- `cache`: the state of sequences between two calls of a layer of `mclab.nn`, and its form for `torch.save`.
"""
