"""Do what each command does, in one file per command, without Typer and without printing.

The file of the same name in `mclab.cli` reads the command line and prints the results.
"""
