"""chatfold: a chat engine whose chats are state machines over an event log.

Owns the list of names that users import, and nothing else: every name lives elsewhere and is imported when it is first
used, so that `import chatfold` stays cheap and loads no SDK and no layer. To publish a name, add it in three places of
this file (a test compares them): the imports for type checkers, the table, and `__all__`.
"""

from typing import TYPE_CHECKING, Final

from chatfold._lazy import lazy_namespace

if TYPE_CHECKING:
    from chatfold._layers import LayerImportError

__version__ = "0.1.0"

__all__ = [
    # The distribution
    "LayerImportError",
    "__version__",
]

_HOMES: Final = {
    "LayerImportError": "chatfold._layers",
}

if not TYPE_CHECKING:  # type checkers would take every misspelt name for one that __getattr__ finds
    __getattr__, __dir__ = lazy_namespace(__name__, _HOMES)
