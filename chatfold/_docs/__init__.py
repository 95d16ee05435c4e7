"""Pages of the documentation that are made from the code; ``docs/generate.py`` lists and writes them."""
