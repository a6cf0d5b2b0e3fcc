"""The sentences under a table: verdicts, what to do next, how to read it, what is unusual."""
