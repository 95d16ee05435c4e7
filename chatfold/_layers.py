"""The guard that the four layer packages are chatfold's own.

The layers are top-level packages with plain names, and other distributions and applications have packages called
`events` or `store` too. Owns the check and its error; when it runs is decided by `chatfold._lazy` and by the entry
points. It finds the packages and reads their marker, and never executes them: a foreign package must not run because
chatfold looked at it.
"""

import importlib.util
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Final

LAYERS: Final = ("events", "chatstate", "store", "generation")

MARKER: Final = "__chatfold_layer__"
"""The name that each layer's `__init__` binds, on a line of its own, to the layer's name."""

_REINSTALL: Final = "pip install --force-reinstall --no-deps chatfold"

_checked = False


class LayerImportError(ImportError):
    """One of the packages events, chatstate, store, generation is not chatfold's own, or is gone.

    Attributes:
        name: The layer's name.
        path: The file or folder that was found in its place, None if nothing was.
    """


def ensure_layers() -> None:
    """Check, once per process, that importing the four layers gives chatfold's own packages.

    Raises:
        LayerImportError: A layer is hidden by another package, was overwritten by one, or is missing. The message
            names the file found and the remedy.
    """
    global _checked  # noqa: PLW0603 - once per process is what is meant
    if _checked:
        return
    home = Path(__file__).parent.parent
    for layer in LAYERS:
        _check(layer, home)
    _checked = True


def _check(layer: str, home: Path) -> None:
    """Raise unless an import of `layer` gives the package that lies beside chatfold, in `home`."""
    try:
        spec = importlib.util.find_spec(layer)
    except ValueError:  # in sys.modules without a spec: somebody put it there by hand
        raise _hidden(layer, getattr(sys.modules[layer], "__file__", None), home) from None
    if spec is None:
        raise _gone(layer, None)
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    beside_chatfold = any(folder.parent.resolve() == home.resolve() for folder in folders)
    if spec.origin is None:  # a namespace package: folders of that name without an __init__
        found = str(folders[0]) if folders else None
        raise _gone(layer, found) if beside_chatfold else _hidden(layer, found, home)
    if not beside_chatfold:
        raise _hidden(layer, spec.origin, home)
    if not _is_marked(spec, spec.origin, layer):
        raise _overwritten(layer, spec.origin)


def _is_marked(spec: ModuleSpec, origin: str, layer: str) -> bool:
    """Tell whether the package's `__init__` binds the marker to `layer`, without executing it."""
    if origin.endswith(".py") and Path(origin).is_file():
        marker = rf"^{MARKER}\b[^=\n]*=\s*[\"']{layer}[\"']"
        return re.search(marker.encode(), Path(origin).read_bytes(), re.MULTILINE) is not None
    # In a zip file, or compiled without its source. Not the way for files: the loader that pytest puts in
    # front of the usual one has no get_code.
    get_code = getattr(spec.loader, "get_code", None)
    code = get_code(layer) if get_code is not None else None
    return code is not None and MARKER in code.co_names and layer in code.co_consts


def _hidden(layer: str, found: str | None, home: Path) -> LayerImportError:
    loaded = "is imported already" if layer in sys.modules else "comes first on sys.path"
    remedy = (
        "Rename that one, take its folder off sys.path (PYTHONPATH, the folder the program is started from), "
        "or give chatfold an environment of its own."
    )
    if not (home / layer).is_dir() and home.is_dir():
        remedy += f" chatfold's own is gone as well; put it back: {_REINSTALL}"
    what = found or "made without a file"
    return LayerImportError(
        f"chatfold needs its own package {layer!r}, but another one {loaded}: {what}. {remedy}",
        name=layer,
        path=found,
    )


def _overwritten(layer: str, found: str) -> LayerImportError:
    from importlib.metadata import distributions  # slow to import, and only needed here

    owners = [
        name
        for name in sorted(
            {distribution.name for distribution in distributions() if _brings(distribution.files, layer)}
        )
        if name != "chatfold"
    ]
    culprit = " and ".join(owners) or "another distribution"
    return LayerImportError(
        f"chatfold needs its own package {layer!r}, but {culprit} was installed over it: {found}. "
        f"The two cannot share an environment: uninstall the other one, then put chatfold's files back: {_REINSTALL}",
        name=layer,
        path=found,
    )


def _brings(files: object, layer: str) -> bool:
    return isinstance(files, list) and any(str(file) == f"{layer}/__init__.py" for file in files)


def _gone(layer: str, found: str | None) -> LayerImportError:
    rest = f"only {found} is left, without its __init__.py" if found else "no package of that name is found"
    return LayerImportError(
        f"chatfold's package {layer!r} is gone: {rest}. Uninstalling a distribution that has a package of "
        f"the same name takes chatfold's files with it. Put them back: {_REINSTALL}",
        name=layer,
        path=found,
    )
