"""Re-execution: the engine's own code made to go through a recorded log again, and what it does otherwise today.

What users, models, tools and the fate of workers brought in is taken from the log; everything else must come out again.
No model is called and no tool is run, and nothing outside of the process is touched.
"""
