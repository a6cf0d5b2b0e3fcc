"""What a task looks like to a config: one model for each word that stands under `task.name`."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from mclab.config.task.base import TaskConfig
from mclab.config.task.mqar import MqarTask

#: Every task by the word that stands under `task.name`.
TASKS: dict[str, type[TaskConfig]] = {"mqar": MqarTask}


def _default_name(value: Any) -> Any:
    return {"name": "mqar", **value} if isinstance(value, dict) else value


Task = Annotated[MqarTask, BeforeValidator(_default_name)]

__all__ = ["TASKS", "MqarTask", "Task", "TaskConfig"]
