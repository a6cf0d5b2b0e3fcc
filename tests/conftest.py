"""Suite-wide settings: one thread a process, as runs on a CPU use one."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
# Tables are as wide as COLUMNS says, whatever the terminal is that the tests are started from.
os.environ.pop("COLUMNS", None)
