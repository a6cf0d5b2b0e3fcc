"""The state that a segment starts from: W^0 (`restart`) or the final state of the segment before (`checkpoint`).

See docs/equations.md#init.
"""

from mclab.memories.base import Init, State


class Restart:
    """Each segment starts from W^0, so segments do not depend on each other."""

    restarts = True

    def start(self, initial: State, last: State) -> State:
        return initial


class Checkpoint:
    """Each segment starts from the final state of the segment before, momentum included."""

    restarts = False

    def start(self, initial: State, last: State) -> State:
        return last


#: Starts by their name under `model.mixer.init`.
INITS: dict[str, Init] = {"restart": Restart(), "checkpoint": Checkpoint()}
