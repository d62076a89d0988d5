"""`python -m remit` is the `remit` command."""

from remit.cli import main

if __name__ == "__main__":
    main()
