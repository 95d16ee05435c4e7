"""The guard against packages that are called like chatfold's layers.

Each case is played with real folders in a process of its own: chatfold and its layers are copied to a folder that
stands for site-packages, and the other package is put where such a package ends up. Each foreign package says so when
it is executed, which must not happen.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from chatfold._layers import LAYERS, MARKER, ensure_layers
from tests.meta.source import ROOT

FOREIGN: Final = 'print("the foreign package was executed")\n'

# A name whose home needs the layers; whether the home exists does not matter, the guard comes first.
FIRST_USE: Final = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
{before}
import chatfold
chatfold._HOMES["Probe"] = "chatfold._lazy"
try:
    {use}
except ImportError as error:
    print(json.dumps([type(error).__name__, str(error), error.name, error.path]))
except AttributeError:
    print(json.dumps(None))  # the guard let it pass, and there is no such name
"""


@dataclass
class Machine:
    """A place with chatfold installed in `site`, and `path` as its sys.path."""

    site: Path
    path: list[Path] = field(default_factory=list)

    def first_use(self, before: str = "", use: str = "chatfold.Probe") -> tuple[str, str, str, str | None] | None:
        """Use chatfold for the first time: (type, message, name, path) of the error, None if there is none."""
        paths = json.dumps([str(folder) for folder in [*self.path, self.site]])
        # -S: nothing but the standard library and what the case put there.
        command = [sys.executable, "-I", "-S", "-c", FIRST_USE.format(before=before, use=use), paths]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=self.site.parent)
        result = json.loads(done.stdout)  # and nothing else was printed: no foreign package ran
        return None if result is None else (result[0], result[1], result[2], result[3])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    site = tmp_path / "site-packages"
    for package in ("chatfold", *LAYERS):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, site / package, ignore=ignored)
    return Machine(site)


def foreign(folder: Path, layer: str) -> Path:
    """Write a package of the layer's name and give its file."""
    file = folder / layer / "__init__.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(FOREIGN)
    return file


def test_chatfolds_own_layers_are_accepted(machine: Machine) -> None:
    assert machine.first_use() is None


@pytest.mark.parametrize("layer", LAYERS)
def test_in_front_of_ours(machine: Machine, tmp_path: Path, layer: str) -> None:
    file = foreign(tmp_path / "application", layer)
    machine.path.append(tmp_path / "application")
    error = machine.first_use()
    assert error is not None
    kind, message, name, path = error
    assert (kind, name, path) == ("LayerImportError", layer, str(file))
    assert str(file) in message
    assert "comes first on sys.path" in message
    assert "Rename that one" in message


@pytest.mark.parametrize("layer", LAYERS)
def test_written_over_ours(machine: Machine, layer: str) -> None:
    file = foreign(machine.site, layer)
    record = machine.site / "other_events-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: other-events\nVersion: 1.0\n")
    (record / "RECORD").write_text(f"{layer}/__init__.py,,\n")
    error = machine.first_use()
    assert error is not None
    kind, message, name, path = error
    assert (kind, name, path) == ("LayerImportError", layer, str(file))
    assert f"other-events was installed over it: {file}" in message
    assert "pip install --force-reinstall --no-deps chatfold" in message


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("rest", ["nothing", "files without an __init__"])
def test_gone_after_anothers_uninstall(machine: Machine, layer: str, rest: str) -> None:
    if rest == "nothing":
        shutil.rmtree(machine.site / layer)
    else:
        (machine.site / layer / "__init__.py").unlink()
    error = machine.first_use()
    assert error is not None
    kind, message, name, path = error
    assert (kind, name) == ("LayerImportError", layer)
    assert path == (None if rest == "nothing" else str(machine.site / layer))
    assert f"{layer!r} is gone" in message
    assert "pip install --force-reinstall --no-deps chatfold" in message


def test_gone_and_another_is_found_behind(machine: Machine, tmp_path: Path) -> None:
    shutil.rmtree(machine.site / "events")
    file = foreign(tmp_path / "application", "events")
    machine.path.append(tmp_path / "application")
    error = machine.first_use()
    assert error is not None
    assert str(file) in error[1]
    assert "own is gone as well" in error[1]


def test_a_plain_module_and_a_folder_hide_ours_too(machine: Machine, tmp_path: Path) -> None:
    module = tmp_path / "application" / "store.py"
    module.parent.mkdir()
    module.write_text(FOREIGN)
    machine.path.append(tmp_path / "application")
    error = machine.first_use()
    assert error is not None
    assert error[3] == str(module)


def test_the_command_line_checks_before_it_loads_anything(machine: Machine, tmp_path: Path) -> None:
    file = foreign(tmp_path / "application", "events")
    machine.path.append(tmp_path / "application")
    error = machine.first_use(use="from chatfold.cli.main import application; application()")
    assert error is not None
    assert error[3] == str(file)


@pytest.mark.parametrize("made", ["imported", "by hand"])
def test_another_was_imported_before(machine: Machine, tmp_path: Path, made: str) -> None:
    file = tmp_path / "application" / "events" / "__init__.py"
    file.parent.mkdir(parents=True)
    file.write_text("")
    before = (
        f"sys.path.insert(0, {str(file.parents[1])!r}); import events; del sys.path[0]"
        if made == "imported"
        else "import types; sys.modules['events'] = types.ModuleType('events')"
    )
    error = machine.first_use(before)
    assert error is not None
    kind, message, name, path = error
    assert (kind, name) == ("LayerImportError", "events")
    assert path == (str(file) if made == "imported" else None)
    assert "is imported already" in message


def test_another_chatfolds_layer_is_not_ours(machine: Machine, tmp_path: Path) -> None:
    shutil.copytree(machine.site / "events", tmp_path / "old" / "events")
    machine.path.append(tmp_path / "old")
    error = machine.first_use()
    assert error is not None
    assert error[3] == str(tmp_path / "old" / "events" / "__init__.py")


def test_layers_in_a_zip_file_are_accepted(machine: Machine, tmp_path: Path) -> None:
    archive = shutil.make_archive(str(tmp_path / "app"), "zip", machine.site)
    assert Machine(Path(archive)).first_use() is None


@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_bears_the_marker(layer: str) -> None:
    lines = (ROOT / layer / "__init__.py").read_text(encoding="utf-8").splitlines()
    assert any(line.startswith(f'{MARKER} = "{layer}"') for line in lines)


def test_the_error_can_be_caught_by_its_public_name(machine: Machine) -> None:
    before = "import chatfold, types; assert issubclass(chatfold.LayerImportError, ImportError)"
    shutil.rmtree(machine.site / "store")
    error = machine.first_use(before)
    assert error is not None
    assert error[2] == "store"


def test_the_check_passes_in_this_process() -> None:
    ensure_layers()
