"""Turn YAML into cells, and cells into runs. Never imports torch."""
