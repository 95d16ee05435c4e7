"""Names of a package that are imported when they are first used (PEP 562).

Owns the mechanism; which names there are is said by the packages that use it. The first name that lives in a module
which may use a layer checks the layers first (`chatfold._layers`).
"""

import importlib
import sys
from collections.abc import Callable, Mapping

_BEFORE_THE_LAYERS = frozenset({"chatfold._layers"})


def lazy_namespace(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the `__getattr__` and `__dir__` of a package.

    Args:
        package: The package's name, its `__name__`.
        homes: Where each public name lives: name -> absolute name of the module that defines it. The table is read
            at each use, so that it may grow.

    Returns:
        The two functions, to be assigned to `__getattr__` and `__dir__` in the package. The first raises
        `AttributeError` for a name that is not in the table, `LayerImportError` if the layers are not chatfold's own,
        and `ImportError` if what the name needs is not installed.
    """

    def resolve(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        if home not in _BEFORE_THE_LAYERS:
            from chatfold._layers import ensure_layers

            ensure_layers()
        value: object = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, value)  # the next use finds it without coming here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return resolve, names
