"""Context sources: revisions, and files as messages carry them."""

import pytest

from events.content import Content
from events.ids import ChatId
from events.parts import ContextFilePart
from generation.context import Context, ContextFile, ContextSource, StaticContext, recorded_revision


class Unannounced:
    name = "disk"
    revision = None

    async def collect(self, chat: ChatId) -> Context:
        return Context(files=(ContextFile(path=chat, text="t"),))


def test_revision_is_a_digest_of_the_files() -> None:
    one = Context(files=(ContextFile(path="a", text="b"),))
    assert one.revision == Context(files=(ContextFile(path="a", text="b"),)).revision
    others = [
        Context(),
        Context(files=(ContextFile(path="a", text="c"),)),
        Context(files=(ContextFile(path="ab", text=""),)),
        Context(files=(ContextFile(path="a", text="b", truncated=True),)),
    ]
    assert len({one.revision, *(other.revision for other in others)}) == 5
    assert Context(revision="r").revision == "r"


def test_part_is_storable() -> None:
    file = ContextFile(path="a", text="b\ud83d", truncated=True, os="linux", directory="/home")
    assert file.part() == ContextFilePart(
        path=Content("a"), text=Content("b\ufffd"), truncated=True, os="linux", directory=Content("/home")
    )
    assert ContextFile(path="a", text="b").part() == ContextFilePart(path=Content("a"), text=Content("b"))
    assert Context(files=(file,)).revision


async def test_static_source() -> None:
    source: ContextSource = StaticContext([ContextFile(path="a", text="b")])
    context = await source.collect(ChatId("chat"))
    assert [file.path for file in context.files] == ["a"]
    assert (source.name, source.revision) == ("static", context.revision)
    assert StaticContext([], name="n", revision="r").revision == "r"


@pytest.mark.parametrize("announced", [None, "old"])
async def test_the_announced_revision_is_recorded_so_that_the_rule_is_satisfied(announced: str | None) -> None:
    source: ContextSource = Unannounced()
    context = await source.collect(ChatId("chat"))
    assert recorded_revision(source, context, announced) == (announced or context.revision)
    static = StaticContext([], revision="new")
    assert recorded_revision(static, context, announced) == (announced or "new")
