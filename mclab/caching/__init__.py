"""Memory Caching (arXiv 2602.24281): one file for each axis, under the name that its key has in `model.mixer`.

- Where a sequence is cut and where segments start: `segment`, `init`.
- How much a token reads of each memory: `connector` and `pool` make the context score, `gate` the logits, `activation`
  the weights gamma (the softmax), `gate_output` hands all of it to the aggregation.
- What is read with those weights: `aggregate`; `route` says which memories `ssc` reads and what teaches the scores.
- `layer` alone composes the axes; `recurrent` is the definition, token by token, which everything else is tested
  against; `own` has gates and aggregations of the user's own.
- Token by token with a cache: `decoding`, `decoding_state`, `decoding_read`.
- `post_training`: a cache for a model that was trained without one; `record_weights`: the weights of a forward pass.

See docs/equations.md#caching.
"""
