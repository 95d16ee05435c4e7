"""Small wrong changes of the product, each of which the corpus gate must catch, and name rightly."""
