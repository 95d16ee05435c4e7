"""Races, each forced into its order by gates: in the store, in the scripted model, in tools."""
