"""`python -m mclab` runs the command `mclab`."""

from mclab.cli import main

if __name__ == "__main__":  # a worker process imports this file again
    main()
