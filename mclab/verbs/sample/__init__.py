"""Make what `mclab sample` shows: sequences of a task, and a stored model's answers with the weights of its gates."""
