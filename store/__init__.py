"""Where it is kept: append with fences, leases, hints, migrations. I/O."""

__chatfold_layer__ = "store"  # read by chatfold._layers: tells this package from others of its name
