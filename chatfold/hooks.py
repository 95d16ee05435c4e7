"""Lifecycle hooks, for applications: what to declare, what they are given, and what they may answer.

Engine(url, [agent], hooks=[PythonHook(check, ["pre_tool_use"]), HttpHook("https://...", ["stop"])])
"""

from generation.errors import HookDenied, HookFailed
from generation.hooks.contract import HOOK_EVENTS, HookAnswer, HookCall, HookEvent
from generation.hooks.dispatch import Hook, Hooks, PythonHook
from generation.hooks.http import HttpHook

__all__ = [
    "HOOK_EVENTS",
    "Hook",
    "HookAnswer",
    "HookCall",
    "HookDenied",
    "HookEvent",
    "HookFailed",
    "Hooks",
    "HttpHook",
    "PythonHook",
]
