"""Where a segment starts: from scratch (`restart`) or from the last segment's end (`checkpoint`).

See docs/equations.md#init.
"""

from mclab.memories.base import Init, State


class Restart:
    """Each segment starts from W^0, so segments do not depend on each other."""

    restarts = True

    def start(self, initial: State, last: State) -> State:
        return initial


class Checkpoint:
    """Each segment starts from the last one's final state, momentum included."""

    restarts = False

    def start(self, initial: State, last: State) -> State:
        return last


#: By the name under `model.mixer.init`.
INITS: dict[str, Init] = {"restart": Restart(), "checkpoint": Checkpoint()}
