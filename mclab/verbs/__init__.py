"""What each command does, one file a verb: no Typer, no printing. `mclab.cli` has a file of the same name for each."""
