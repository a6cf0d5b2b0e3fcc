"""What a step asks of a device: operations that work on data, as torch's dispatcher sees them."""

from collections import Counter
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

#: What only looks at memory otherwise, or takes some, and launches nothing.
_FREE = ("aten::_unsafe_view", "aten::detach", "aten::alias", "aten::empty", "aten::new_empty")


class Launches(TorchDispatchMode):
    """Counts operations by name; views and what only takes memory are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return self.names.total()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        returned = [value.alias_info for value in func._schema.returns]
        is_view = any(info is not None and not info.is_write for info in returned)
        if not is_view and not func.name().startswith(_FREE):
            self.names[func.name()] += 1
        return func(*args, **(kwargs or {}))
