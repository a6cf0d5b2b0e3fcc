"""The config's literal names are those of the registries."""

from typing import get_args

import pytest

from mclab.caching.aggregate import AGGREGATES
from mclab.caching.connector import CONNECTORS
from mclab.caching.gate import GATES
from mclab.caching.init import INITS
from mclab.caching.pool import POOLS
from mclab.caching.segment import SEGMENTS
from mclab.config import model as config_model
from mclab.config.model import MemoryMixer
from mclab.config.task import TASKS as TASK_CONFIGS
from mclab.models.hybrid import HYBRIDS
from mclab.models.mixers import MIXERS
from mclab.tasks import TASKS


@pytest.mark.parametrize(
    ("literal", "registry"),
    [
        (config_model.Aggregate, AGGREGATES),
        (config_model.Gate, GATES),
        (config_model.Connector, CONNECTORS),
        (config_model.Init, INITS),
        (config_model.Pool, POOLS),
        (config_model.Hybrid, ["none", *HYBRIDS]),
        (MemoryMixer.model_fields["segmentation"].annotation, SEGMENTS),
    ],
)
def test_config_names_what_the_registries_hold(literal, registry):
    assert set(literal.__args__) == set(registry)


def test_config_names_the_mixers_and_tasks_that_exist():
    assert set(config_model.MIXERS) == set(MIXERS)
    assert {name: model().name for name, model in config_model.MIXERS.items()} == {name: name for name in MIXERS}
    assert set(get_args(get_args(config_model.Mixer)[0])) == set(config_model.MIXERS.values())
    assert set(TASK_CONFIGS) == set(TASKS)
