"""No secret survives in logs that the engine wrote, wherever it was said; and their decisions stay as they were."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pytest
from msgspec import Struct
from msgspec.structs import replace

from chatfold import Content, FilePart, TextPart
from chatfold.redacting.record import Order, record_log
from chatfold.redacting.rules import RedactionRules
from chatfold.replaying.decisions import decision_drifts
from chatfold.replaying.logs import LogSource
from chatfold.testing import ClassifiedError, Fail, UseTool, turn
from events.codec import decode_each
from events.digest import GENESIS
from events.encoding import encode_each
from events.envelope import Recorded
from events.ids import ChatId
from events.logfile import header_of, read_log, write_log
from tests.corpus.kit import Scene, play
from tests.corpus.make import FOLDER

KEY: Final = b"a key that nobody would guess"
_T = TypeVar("_T")


def recorded(data: bytes, folder: Path) -> bytes:
    """Record a log as `chatfold record` does, and return what it wrote."""
    plain = folder / "plain.jsonl"
    plain.write_bytes(data)
    done = record_log(LogSource("file", str(plain)), Order(rules=RedactionRules(), key=KEY, folder=str(folder)))
    assert done.failed is None
    assert done.file is not None
    assert list(decision_drifts(LogSource("file", done.file).read().recorded())) == []
    return Path(done.file).read_bytes()


class Planter:
    """Puts a secret into each content, in the form that the content has."""

    def __init__(self) -> None:
        self.planted: dict[str, str] = {}

    def planted_in(self, value: _T, place: str) -> _T:
        """Return a value with secrets in all of its contents."""
        match value:
            case Content():
                return cast(_T, Content(self._said(value.value, place)) if value.available else value)
            case tuple():
                return cast(_T, tuple(self.planted_in(each, place) for each in value))
            case Struct():
                names = ((name, getattr(value, name)) for name in value.__struct_fields__)
                kind = type(value).__name__
                return cast(_T, replace(value, **{name: self.planted_in(old, f"{kind}.{name}") for name, old in names}))
            case _:
                return value

    def _said(self, value: Any, place: str) -> Any:
        secret = f"secret-{len(self.planted)}-xyzzy"
        self.planted[secret] = place
        if place == "FilePart.data":
            return base64.b64encode(base64.b64decode(value) + secret.encode()).decode()
        if isinstance(value, str):
            try:
                inner = json.loads(value)
            except ValueError:
                inner = None
            return json.dumps(self._json(inner, secret)) if isinstance(inner, dict | list) else f"{value} {secret}"
        return self._json(value, secret)

    def _json(self, value: Any, secret: str) -> Any:
        if isinstance(value, dict):
            return {**value, "x-api-key": secret, "headers": {"Authorization": f"Bearer {secret}", secret: None}}
        return [*value, secret] if isinstance(value, list) else [value, secret]


def _written(log: list[Recorded]) -> bytes:
    """Return events as a file, with a chain of their own."""
    made = list(encode_each(log, partial(secrets.token_bytes, 16), GENESIS))
    events = [each.stored for each in made]
    blobs = {digest: blob for each in made for digest, blob in each.blobs.items()}
    header = header_of(ChatId(getattr(log[0].event, "chat", "")), events, release="0.2.0", blobs=blobs)
    return b"".join(write_log(header, events, blobs))


def _survivors(planted: dict[str, str], raw: bytes) -> Iterator[str]:
    for secret, place in planted.items():
        # In base64 it stands in one of three ways, by where it begins.
        forms = [secret.encode(), *(base64.b64encode(b"x" * n + secret.encode())[4:-4] for n in range(3))]
        if any(form in raw for form in forms):
            yield place


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_no_secret_in_any_content_of_the_corpus_survives(path: Path, tmp_path: Path) -> None:
    file = read_log(path.read_bytes().splitlines(), path.name)
    planter = Planter()
    log = [
        Recorded(each.envelope, planter.planted_in(each.event, ""))
        for each in decode_each(file.events, blobs=file.blobs)
    ]
    data = _written(log)
    assert set(_survivors(planter.planted, data)) == set(planter.planted.values())
    assert list(_survivors(planter.planted, recorded(data, tmp_path))) == []


_TOLD: Final = (
    "argument", "header", "message", "detail", "answer", "file.png", "text", "owner", "title", "label", "value", "chat",
    "command",
)  # fmt: skip
"""All secrets but the bytes of the file, which stand in base64."""


async def _told(scene: Scene) -> str:
    """Secrets where users, models, tools and services say them."""
    call = UseTool("add", {"path": "/home/secret-argument", "headers": {"Authorization": "Bearer secret-header"}})
    denied = ClassifiedError(kind="auth", message="No: secret-message.", detail="key=secret-detail", status_code=401)
    engine = await scene.engine([turn("It is secret-answer.", call), turn(Fail(denied))])
    png = base64.b64encode(b"\x89PNG\r\n\x1a\nsecret-bytes").decode()
    picture = FilePart(media_type="image/png", data=Content(png), name=Content("secret-file.png"))
    chat = (
        await engine.create_chat(
            "assistant",
            [TextPart(text=Content("My password is secret-text.")), picture],
            owner="secret-owner",
            title="About secret-title",
            labels={"secret-label": "secret-value"},
            chat_id="secret-chat",
            command_id="secret-command",
        )
    ).chat
    await engine.settled(chat)
    return chat


def test_no_secret_that_was_told_in_a_chat_survives(tmp_path: Path) -> None:
    data = play(_told)
    assert [word for word in _TOLD if f"secret-{word}".encode() not in data] == []
    raw = recorded(data, tmp_path)
    assert b"secret-" not in raw
    assert base64.b64encode(b"\x89PNG\r\n\x1a\nsecret-bytes") in data
    assert base64.b64encode(b"\x89PNG\r\n\x1a\nsecret-bytes") not in raw
