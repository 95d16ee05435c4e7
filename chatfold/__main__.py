"""``python -m chatfold``: the command line."""

from chatfold.cli.main import main

if __name__ == "__main__":
    main()
