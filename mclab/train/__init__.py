"""Train and evaluate: from configs to outcomes. Checkpoints are the only files that are written here.

A *pack* is several runs that differ only in seed, learning rate and other scalars, trained as one batched model.

- `loop`: `train_pack`, from configs to outcomes. `step`: one training step, captured as one graph on CUDA.
  `compiled`: its loss, eager or through torch.compile.
- `pack`: the model of all replicas with its optimiser; `optim`: AdamW and the learning rate's schedule.
- `data`: training batches. `evaluate`: accuracy and loss on valid and test. `routing`: the random draws that teach
  `ssc` which memories to read.
- Files: `checkpoint` (resume), `weights` (a trained model), both written by `tensor_file`.
- `provenance`: what a result was computed with. `cpu_settings`: settings of a process that trains on the CPU.
"""

from mclab.train.loop import train_pack

__all__ = ["train_pack"]
