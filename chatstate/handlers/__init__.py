"""Handlers: one function per trigger, from command and state to the event. They check what the table cannot say."""
