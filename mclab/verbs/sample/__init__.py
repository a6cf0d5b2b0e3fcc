"""What `mclab sample` shows: a task's sequences, and a stored model's answers on them with its gates' weights."""
