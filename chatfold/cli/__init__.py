"""The command line.

Its modules import the layers as they are loaded, so the layers are checked before the first of them is.
"""

from chatfold._layers import ensure_layers

ensure_layers()
