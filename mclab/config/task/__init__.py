"""The keys of a task: one model for each value of `task.name`."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from mclab.config.task.ar import ArTask
from mclab.config.task.base import TaskConfig
from mclab.config.task.facts import FactsTask
from mclab.config.task.module import ModuleTask
from mclab.config.task.mqar import MqarTask
from mclab.config.task.niah import NiahTask
from mclab.config.task.text import TextTask

#: Every task by the value of `task.name`.
TASKS: dict[str, type[TaskConfig]] = {
    "mqar": MqarTask,
    "ar": ArTask,
    "niah": NiahTask,
    "text": TextTask,
    "facts": FactsTask,
    "module": ModuleTask,
}


def _default_name(value: Any) -> Any:
    return {"name": "mqar", **value} if isinstance(value, dict) else value


Task = Annotated[
    Annotated[MqarTask | ArTask | NiahTask | TextTask | FactsTask | ModuleTask, Field(discriminator="name")],
    BeforeValidator(_default_name),
]

__all__ = ["TASKS", "ArTask", "FactsTask", "ModuleTask", "MqarTask", "NiahTask", "Task", "TaskConfig", "TextTask"]
