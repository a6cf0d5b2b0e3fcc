"""Memory Caching (arXiv 2602.24281): one file for each axis, named like its key in `model.mixer`.

- Where a sequence is cut and where segments start: `segment`, `init`.
- How much a token reads of each memory: `connector` and `pool` make the context score, `gate` the logits, `activation`
  the weights gamma (the softmax); `gate_output` passes all of it to the aggregation.
- What is read with these weights: `aggregate`; `route` says which memories `ssc` reads and how the scores learn.
- `layer` alone composes the axes; `recurrent` is the definition, token by token, against which everything else is
  tested; `own` has gates and aggregations of the user's own.
- Token by token with a cache: `decoding`, `decoding_state`, `decoding_read`.
- `post_training`: a cache for a model that was trained without one; `record_weights`: the weights of a forward pass.

See docs/equations.md#caching.
"""
