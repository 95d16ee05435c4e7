"""The contract's promises on appending, importing and deleting."""

from typing import Any

import msgspec
import pytest

from events.ids import ChatId, CommandId, WorkerId
from store.contract import Append, Appended, CommandRecord, Conflict, DuplicateCommand, Store
from store.errors import MalformedAppend
from tests.store.making import CHAT, appending, events, header, of

ODD_TEXTS = [
    "",
    "\x00",
    "a\x00b",
    "\x01",
    "\x010",
    "\x011\x00",
    "é 😀 \u202e",
    'it\'s "quoted" \\',
    "%s {} $1",
    "a,b",
    " a ",
]


async def everything(store: Store) -> Any:
    """All that can be read of the one chat, to be compared before and after."""
    loaded = await store.load_header(CHAT)
    return (
        loaded and loaded.header,
        await store.read_events(CHAT),
        await store.get_blobs(["d1", "d2"]),
        await store.find_command(CHAT, CommandId("new")),
    )


class AppendContract:
    async def test_an_append_creates_a_chat(self, store: Store) -> None:
        assert await store.load_header(CHAT) is None
        first = appending(0, "a", "a", "b")
        assert await store.append(first) == Appended()
        loaded = await store.load_header(CHAT)
        assert loaded is not None
        assert loaded.header == first.header
        assert list(await store.read_events(CHAT)) == of(first)

    async def test_an_append_goes_on_from_the_version_it_expects(self, store: Store) -> None:
        appends = [appending(0), appending(1, "a", "b"), appending(3, status="error", title="t")]
        for append in appends:
            assert await store.append(append) == Appended()
        loaded = await store.load_header(CHAT)
        assert loaded is not None
        assert loaded.header == appends[-1].header
        assert list(await store.read_events(CHAT)) == of(*appends)

    @pytest.mark.parametrize(("expected", "found"), [(0, 2), (1, 2), (3, 2)])
    async def test_another_version_is_a_conflict(self, store: Store, expected: int, found: int) -> None:
        await store.append(appending(0, "a", "b", blobs={"d1": b"1"}))
        before = await everything(store)
        erased = {1: b"gone"} if expected else {}
        refused = appending(expected, "new", blobs={"d2": b"2"}, erased=erased, title="new")
        assert await store.append(refused) == Conflict(found)
        assert await everything(store) == before

    async def test_a_chat_that_is_not_there_is_a_conflict(self, store: Store) -> None:
        assert await store.append(appending(4)) == Conflict(0)
        assert await store.load_header(CHAT) is None
        assert not await store.read_events(CHAT)

    @pytest.mark.parametrize("fingerprint", [b"first", b"", None])
    async def test_a_command_is_written_once(self, store: Store, fingerprint: bytes | None) -> None:
        made = events(1, "start", "new", "new", fingerprint=fingerprint)
        await store.append(Append(chat=CHAT, expected_version=0, header=header(3), events=made))
        before = await everything(store)
        again = appending(3, "fresh", "new", blobs={"d2": b"2"}, erased={1: b"gone"})
        kept = fingerprint or None
        assert await store.append(again) == DuplicateCommand(2, kept)
        assert await everything(store) == before
        assert await store.find_command(CHAT, CommandId("new")) == CommandRecord(2, 3, kept)

    @pytest.mark.parametrize("expected", [0, 1, 9])
    async def test_a_repeated_command_is_known_on_any_version(self, store: Store, expected: int) -> None:
        await store.append(appending(0, "new"))
        await store.append(appending(1, "later"))
        assert await store.append(appending(expected, "new")) == DuplicateCommand(1, b"print")

    async def test_a_command_is_new_in_another_chat(self, store: Store) -> None:
        other = ChatId("other")
        assert await store.append(appending(0, "same")) == Appended()
        assert await store.append(appending(0, "same", chat=other)) == Appended()
        assert await store.find_command(other, CommandId("same")) == CommandRecord(1, 1, b"print")

    async def test_where_a_command_stands(self, store: Store) -> None:
        await store.append(appending(0, "a", "a", "b"))
        await store.append(appending(3, "c", "c", "c"))
        found = [await store.find_command(CHAT, CommandId(name)) for name in ("a", "b", "c", "d")]
        assert found == [
            CommandRecord(1, 2, b"print"),
            CommandRecord(3, 3, b"print"),
            CommandRecord(4, 6, b"print"),
            None,
        ]
        assert await store.find_command(ChatId("other"), CommandId("a")) is None

    async def test_blobs_are_kept_once(self, store: Store) -> None:
        await store.append(appending(0, blobs={"d1": b"\x00one", "d2": b""}))
        assert await store.append(appending(1, blobs={"d1": b"\x00one", "d3": b"three"})) == Appended()
        assert await store.get_blobs(["d3", "d1", "none", "d2"]) == {"d1": b"\x00one", "d2": b"", "d3": b"three"}
        assert await store.get_blobs([]) == {}

    async def test_erasing_replaces_content_alone(self, store: Store) -> None:
        first = appending(0, "a", "b", "c")
        erasing = appending(3, erased={1: b"", 3: b"stub"})
        await store.append(first)
        await store.append(erasing)
        before = of(first, erasing)
        expected = [
            msgspec.structs.replace(before[0], content=b""),
            before[1],
            msgspec.structs.replace(before[2], content=b"stub"),
            before[3],
        ]
        assert list(await store.read_events(CHAT)) == expected

    @pytest.mark.parametrize(
        "malformed",
        [
            msgspec.structs.replace(appending(0), events=()),
            msgspec.structs.replace(appending(0), events=events(2, "a"), header=header(2)),
            msgspec.structs.replace(appending(0, "a", "b"), events=(*events(1, "a"), *events(3, "b"))),
            msgspec.structs.replace(appending(0), header=header(2)),
            msgspec.structs.replace(appending(0), header=header(1, ChatId("other"))),
            appending(0, "a", "b", "a"),
            appending(0, erased={1: b""}),
        ],
        ids=["empty", "late", "gap", "header version", "header chat", "command twice", "erases itself"],
    )
    async def test_an_append_that_contradicts_itself_is_refused(self, store: Store, malformed: Append) -> None:
        with pytest.raises(MalformedAppend):
            await store.append(malformed)
        assert await store.load_header(CHAT) is None
        assert not await store.read_events(CHAT)

    async def test_every_column_comes_back(self, store: Store) -> None:
        full = header(
            status="running", interrupting=True, archived=True, queued=3, history_version=7, queue_version=8, epoch=9,
            holder=WorkerId("w"), due_at=2**63 - 1, created_at=-1, updated_at=2**62, control=bytes(range(256)),
            digest=b"\x00", title="title", labels={"k": "v", "": ""}, parent=ChatId("p"), pinned=True, foreign=True,
            reader_level=7,
        )  # fmt: skip
        await store.append(msgspec.structs.replace(appending(0), header=full))
        loaded = await store.load_header(CHAT)
        assert loaded is not None
        assert loaded.header == full

    @pytest.mark.parametrize("text", ODD_TEXTS)
    async def test_texts_come_back_as_they_were(self, store: Store, text: str) -> None:
        chat, command = ChatId(f"c{text}"), CommandId(text)
        made = appending(0, text, chat=chat, owner=text, agent=text, title=text, labels={text: text})
        assert await store.append(made) == Appended()
        assert await store.append(made) == DuplicateCommand(1, b"print")
        loaded = await store.load_header(chat)
        assert loaded is not None
        assert loaded.header == made.header
        assert list(await store.read_events(chat)) == of(made)
        assert await store.find_command(chat, command) == CommandRecord(1, 1, b"print")

    async def test_a_large_event_comes_back(self, store: Store) -> None:
        (new,) = events(1, "large")
        large = msgspec.structs.replace(new.stored, content=b"\x00\xff" * 1_000_000)
        await store.append(
            Append(
                chat=CHAT, expected_version=0, header=header(1), events=(msgspec.structs.replace(new, stored=large),)
            )
        )
        assert list(await store.read_events(CHAT)) == [large]


class ImportContract:
    async def test_a_log_is_imported_whole(self, store: Store) -> None:
        made = events(1, *(f"c{n // 2}" for n in range(2500)))
        imported = header(2500, foreign=True)
        assert await store.import_chat(imported, made, {"d1": b"1"})
        loaded = await store.load_header(CHAT)
        assert loaded is not None
        assert loaded.header == imported
        assert list(await store.read_events(CHAT)) == [new.stored for new in made]
        assert await store.find_command(CHAT, CommandId("c1249")) == CommandRecord(2499, 2500, b"print")
        assert await store.get_blobs(["d1"]) == {"d1": b"1"}

    async def test_an_imported_chat_goes_on(self, store: Store) -> None:
        await store.import_chat(header(2), events(1, "a", "b"), {})
        assert await store.append(appending(2, "b")) == DuplicateCommand(2, b"print")
        assert await store.append(appending(2, "c")) == Appended()

    async def test_an_existing_chat_is_not_overwritten(self, store: Store) -> None:
        await store.append(appending(0, blobs={"d1": b"1"}))
        before = await everything(store)
        assert not await store.import_chat(header(2), events(1, "new", "x"), {"d2": b"2"})
        assert await everything(store) == before

    async def test_a_log_that_contradicts_itself_is_refused(self, store: Store) -> None:
        with pytest.raises(MalformedAppend):
            await store.import_chat(header(2), events(1, "a"), {})
        assert await store.load_header(CHAT) is None


class DeleteContract:
    async def test_a_deleted_chat_leaves_its_digest(self, store: Store) -> None:
        made = appending(0, "a", "b")
        await store.append(made)
        await store.append(appending(0, chat=ChatId("other")))
        assert await store.tombstone(CHAT) is None
        assert await store.delete(CHAT, 2)
        assert await store.tombstone(CHAT) == made.header.digest
        assert await store.load_header(CHAT) is None
        assert not await store.read_events(CHAT)
        assert await store.find_command(CHAT, CommandId("a")) is None
        assert await store.load_header(ChatId("other")) is not None
        assert len(await store.read_events(ChatId("other"))) == 1

    async def test_another_version_is_not_deleted(self, store: Store) -> None:
        await store.append(appending(0, "a", "b"))
        before = await everything(store)
        assert not await store.delete(CHAT, 1)
        assert not await store.delete(CHAT, 3)
        assert not await store.delete(ChatId("none"), 0)
        assert await everything(store) == before
        assert await store.tombstone(CHAT) is None

    async def test_the_id_of_a_deleted_chat_is_never_used_again(self, store: Store) -> None:
        await store.append(appending(0, "a", "b"))
        await store.delete(CHAT, 2)
        assert await store.append(appending(0, "new")) == Conflict(2)
        assert await store.append(appending(2, "new")) == Conflict(0)
        assert not await store.import_chat(header(1), events(1, "new"), {})
        assert not await store.delete(CHAT, 2)
        assert await store.load_header(CHAT) is None
