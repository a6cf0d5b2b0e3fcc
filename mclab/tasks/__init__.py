"""Synthetic recall tasks: pure functions from (config, seed, split, sample number) to tokens.

To add a task: write a config model in `mclab.config.task` and a module here with the functions of
`mclab.tasks.base.Task`, and add a line to `TASKS` below.

- The contract: `base`. The tasks: `mqar`, `ar`, `niah` (with `haystack`), `text`, `facts`, `module` (a user's own).
- Random numbers: `stream` (the counter-based generator), `draws` (without replacement), `splits` (which split a
  sequence belongs to).
- `scoring`: what counts as right. `baseline` and `predictors/`: the accuracy that is possible without recall.
"""

from mclab.tasks import ar, facts, module, mqar, niah, text
from mclab.tasks.base import NO_ANSWER, NO_SLICE, Batch, Role, Task
from mclab.tasks.splits import SPLITS

#: Each task by its name, the value of `task.name`.
TASKS: dict[str, Task] = {"mqar": mqar, "ar": ar, "niah": niah, "text": text, "facts": facts, "module": module}

__all__ = ["NO_ANSWER", "NO_SLICE", "SPLITS", "TASKS", "Batch", "Role", "Task"]
