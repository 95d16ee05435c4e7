"""Tools: what declares one, what the model sees of it, and how a call runs."""
