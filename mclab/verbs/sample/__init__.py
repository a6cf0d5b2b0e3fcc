"""What `mclab sample` shows: sequences of a task, and a stored model's answers on them with its gates' weights."""
