"""What happened: vocabulary, stored form, state and its reducer, replay. Pure."""
