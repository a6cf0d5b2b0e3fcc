"""mclab: a lab bench for rapid architecture ablations on synthetic recall tasks."""

__version__ = "0.1.0"
