"""YAML to cells to runs. Never imports torch."""
