"""What each kind of incident is recognised by in a turn, and what is said of it. Pure.

Each function yields the signs of one kind; which kinds there are, and in which order, is ``incidents``'s matter.
"""
