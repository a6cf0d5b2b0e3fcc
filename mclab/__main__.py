"""`python -m mclab` is `mclab`."""

from mclab.cli import main

if __name__ == "__main__":  # a worker process imports this file again
    main()
