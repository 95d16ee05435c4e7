"""Where it is kept: append with fences, leases, hints, migrations. I/O."""
