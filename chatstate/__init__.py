"""What may happen: the machine, commands to events, invariants, audit, diagrams. Pure."""
