"""Where Triton's kernels run. Imports no torch."""

import os


def interpreted() -> bool:
    """Return whether this process runs Triton's kernels in its interpreter: numpy on the CPU, slow, and for tests."""
    return os.environ.get("TRITON_INTERPRET") == "1"
