"""Golden samples: stored forms that every later release must read.

A folder per release that brought new stored forms (``v0.1``): ``events/`` has one event of each type with every field
filled, ``logs/`` one log file per thing that a log without it would never gain. The modules beside them say in Python
what the samples hold. Samples are added by ``python -m tests.golden.add`` and never changed.
"""
