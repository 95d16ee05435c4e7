"""Files that are kept beside logs: another file is refused with what it looks like, and what takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from chatfold.rerunning.declarations import read_declarations
from chatfold.rerunning.kept import KeptFileError
from chatfold.rerunning.sections import read_sections

READERS: Final[dict[str, Callable[[Path], Any]]] = {"sections": read_sections, "declarations": read_declarations}

REFUSED: Final[dict[str, tuple[bytes, str]]] = {
    "no JSON": (b"nothing", "is no file of {kind}: it is no JSON: "),
    "no text": (b'{"chatfold_{kind}": 1, "texts": "\xff"}', "is no file of {kind}: it is no JSON: "),
    "nothing in it": (b"", "is no file of {kind}: it is no JSON: "),
    "too deep": (b"[" * 100_000, "is no file of {kind}: it is no JSON: it is nested too deep"),
    "a list": (b"[]", "is no file of {kind}: it has to be an object with 'chatfold_{kind}', and is a list"),
    "a number": (b"1", "it has to be an object with 'chatfold_{kind}', and is a plain value"),
    "any object": (b'{"a": 1}', "is no file of {kind}: it has no 'chatfold_{kind}', but 'a'"),
    "a large object": (b'{"a":1,"b":1,"c":1,"d":1}', "it has no 'chatfold_{kind}', but 'a', 'b', 'c', ..."),
    "an empty object": (b"{}", "it has no 'chatfold_{kind}', but nothing at all"),
    "a log": (b'{"chatfold_log":1}\n{"version":1}\n', "it looks like a log: `chatfold rerun` takes it"),
    "another form": (b'{"chatfold_{kind}": 2}', "is a file of {kind} of form 2; 1 is known here"),
    "a form that is no number": (b'{"chatfold_{kind}": true}', "is a file of {kind} of form True; 1 is known here"),
    "another shape": (b'{"chatfold_{kind}": 1, "texts": 1, "agents": 1}', "is no file of {kind}: Expected `object`"),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("what", REFUSED)
def test_another_file_is_refused_by_name(tmp_path: Path, kind: str, what: str) -> None:
    data, said = REFUSED[what]
    file = tmp_path / "other.json"
    file.write_bytes(data.replace(b"{kind}", kind.encode()))
    with pytest.raises(KeptFileError) as refused:
        READERS[kind](file)
    assert str(refused.value).startswith(str(file))
    assert said.replace("{kind}", kind) in str(refused.value)


def test_of_two_kinds_each_says_what_the_other_is_taken_by(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text('{"chatfold_declarations": 1, "agents": {}}')
    with pytest.raises(KeptFileError, match=r"looks like a file of declarations: .* in the folder of a log"):
        read_sections(file)
    file.write_text('{"chatfold_sections": 1}')
    with pytest.raises(KeptFileError, match=r"looks like a file of sections: `chatfold rerun --sections` takes it"):
        read_declarations(file)


@pytest.mark.parametrize("kind", READERS)
def test_what_cannot_be_read_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    with pytest.raises(KeptFileError, match=r"cannot be read: Is a directory"):
        READERS[kind](tmp_path)
