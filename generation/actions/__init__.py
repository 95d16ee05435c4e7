"""Effects: one module per kind of attempt. Each does its work outside of any lock and returns an outcome to record."""
