"""Plain tensor functions: a literal recurrence and a fast chunkwise form of each rule."""
