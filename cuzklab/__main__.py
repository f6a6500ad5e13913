"""`python -m cuzklab` is the command `cuzklab`."""

from cuzklab.cli import main

if __name__ == "__main__":
    main()
