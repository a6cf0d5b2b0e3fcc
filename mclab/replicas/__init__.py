"""The replica axis R: several runs of one shape, a pack, are trained as one batched model.

- `parameters`: parameters [R, *shape], what they start from, and the drawing of it;
- `layers`: linear maps, norm, short convolution and MLP of such parameters; autocast, rotary positions;
- `stacked`: a part of the user's own, which knows no replicas, run once for each.
"""
