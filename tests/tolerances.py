"""Every tolerance of the suite, each with its reason."""

#: fp64 against fp64 by another order of operations: sums of a few hundred products of order one round to about 1e-13.
FP64 = 1e-9
#: A pack against separate runs in fp64 after 20 steps: rounding of batched products, grown by 20 Adam steps.
PACK = 1e-10
#: Golden losses in fp32: other instruction sets and torch versions round differently, and training amplifies it.
GOLDEN = 2e-3
#: Losses of twenty steps in fp64 from the same start on another machine: other vector instructions and BLAS sum in
#: another order, 1e-16 a product; AVX2 against AVX-512 made 1e-14 of it in twenty steps at most.
OTHER_SUMS = 1e-10
#: The same where the start is rounded otherwise: parameters are drawn in fp32, 1e-7 apart, and the default code of
#: PyTorch against AVX-512 made 6e-5 of it in twenty steps at most.
OTHER_START = 5e-4
#: bf16 against fp32 with the same weights, as relative RMS: eight bits round a number by 2^-9, and what a layer gives
#: went through about ten roundings of products, norms and gates that each pass the earlier ones on.
BF16 = 3e-2
#: A Triton kernel against the definition in fp64, by relative root mean square: fp64 sums of a few hundred products,
#: and fp32's, whose rounding of 6e-8 a product adds up. With products in bf16 (4e-3) or tf32 (5e-4) on a GPU, where
#: nothing has been measured yet.
TRITON = {"float64": 1e-12, "float32": 3e-6, "bfloat16": 2e-2}
#: The chunk loop, likewise: the norm of a short vector grows rounding. Where torch's own fp32 form is off by more than
#: half of this, as in one case of the full set (2.2e-5), twice its error is allowed (kernels/against.py).
LOOP = {**TRITON, "float32": 1e-5}
