"""What happened: vocabulary, stored form, state and its reducer, replay. Pure."""

__chatfold_layer__ = "events"  # read by chatfold._layers: tells this package from others of its name
