"""What happens next: decision, prompt, providers, tools, runner, worker."""

__chatfold_layer__ = "generation"  # read by chatfold._layers: tells this package from others of its name
