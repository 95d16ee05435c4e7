"""Lifecycle hooks: parts of an application that are asked before and after what a chat does."""
