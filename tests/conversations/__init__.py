"""Random conversations with services that check what they are sent."""
