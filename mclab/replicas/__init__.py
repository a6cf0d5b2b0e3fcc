"""The replica axis R: several runs of one shape, a pack, are trained as one batched model.

- `parameters`: parameters [R, *shape], their initial values, and how these are drawn;
- `layers`: linear maps, norm, short convolution and MLP of such parameters; autocast, rotary positions;
- `stacked`: runs a part of the user's own, which does not know about replicas, once for each replica.
"""
