"""What may happen: the machine, commands to events, invariants, audit, diagrams. Pure."""

__chatfold_layer__ = "chatstate"  # read by chatfold._layers: tells this package from others of its name
