"""Every tolerance of the suite, each with its reason."""

#: fp64 against fp64 by another order of operations: sums of a few hundred products of order one round to about 1e-13.
FP64 = 1e-9
#: A pack against separate runs in fp64 after 20 steps: rounding of batched products, grown by 20 Adam steps.
PACK = 1e-10
#: Golden losses in fp32: other instruction sets and torch versions round differently, and training amplifies it.
GOLDEN = 2e-3
#: Losses of twenty steps in fp64 on another machine: other vector instructions and BLAS sum in another order, 1e-16 a
#: product; Adam's first steps divide by small gradients and made 1e-11 of it between the default, AVX2 and AVX-512 code.
OTHER_MACHINE = 1e-8
