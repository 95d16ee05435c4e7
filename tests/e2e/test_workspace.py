"""A workspace of real files: collected, read by the model, changed, marked, collected anew; and its skills."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chatfold.contexts import ChatContext, ContextResource
from chatfold.engine import Engine
from chatfold.testing.servers import Answer, ToolCall
from chatstate.errors import TransitionNotAllowed
from events import vocabulary as v
from events.ids import ChatId
from generation.agents import Agent
from generation.context import Context, StaticContext
from generation.context_directory import DirectoryContext
from generation.errors import UnknownAgent
from generation.tools.contract import tool
from tests.e2e.checks import check
from tests.e2e.kit import SETTINGS, Place, Scene, outputs, results, stage, texts
from tests.generation.test_context_directory import put, skill


def prompts(scene: Scene) -> list[str]:
    return [request.raw.decode() for request in scene.server.requests]


async def marks(scene: Scene, chat: str) -> list[str]:
    return [each.event.mark for each in await scene.engine.events(chat) if isinstance(each.event, v.ContextMarked)]


async def test_files_and_skills_are_collected_and_read_by_the_model(place: Place, tmp_path: Path) -> None:
    put(
        tmp_path / "w",
        {
            "AGENTS.md": "Always answer in Latin.",
            "CLAUDE.md": b"\xff",
            "skills/deploy/SKILL.md": skill("deploy", "How to <deploy> a release.", "First run the tests."),
            "skills/deploy/scripts/run.sh": "echo deploy",
            "skills/deploy/.env": "secret of the workspace",
        },
    )
    script = [
        Answer([ToolCall("read_skill", {"name": "deploy"}), ToolCall("read_skill", {"name": "gone"})]),
        Answer(
            [
                ToolCall("read_skill_file", {"name": "deploy", "path": "scripts/run.sh"}),
                ToolCall("read_skill_file", {"name": "deploy", "path": ".env"}),
                ToolCall("read_skill_file", {"name": "deploy", "path": "../../AGENTS.md"}),
            ]
        ),
        Answer("Factum est."),
    ]
    async with stage(place, script, context=DirectoryContext(tmp_path / "w")) as scene:
        chat = await scene.start("Deploy it")
        state = await scene.settled(chat)
        assert texts(state) == ["Factum est."]

        first = prompts(scene)[0]
        assert first.count("Always answer in Latin.") == 1
        assert '<skill name=\\"deploy\\">How to &lt;deploy&gt; a release.</skill>' in first
        assert "First run the tests." not in first
        assert "read_skill_file" in first
        assert [result.is_error for result in results(state)] == [False, True, False, True, True]
        found, gone, read, hidden, above = outputs(state)
        assert found == {
            "name": "deploy",
            "dir": "skills/deploy",
            "body": "First run the tests.",
            "files": ["scripts/run.sh"],
        }
        assert gone == "Skill not available: 'gone'."
        assert read == {"content": "echo deploy"}
        assert "hidden" in hidden
        assert "must not go up" in above
        assert "First run the tests." in prompts(scene)[1]
        assert "secret of the workspace" not in "".join(prompts(scene))

        context = await scene.engine.context(chat)
        assert (context.source, context.dirty, context.refreshing) == ("directory", False, False)
        assert context.resources == (
            ContextResource(path="AGENTS.md", status="ok"),
            ContextResource(path="CLAUDE.md", status="invalid", detail="is no UTF-8 text"),
            ContextResource(path="skills/deploy", status="ok", skill="deploy", detail="How to <deploy> a release."),
        )
        await check(scene, chat)


async def test_a_stale_context_marks_the_chat_and_a_refresh_collects_anew(place: Place, tmp_path: Path) -> None:
    put(tmp_path, {"w/AGENTS.md": "Answer in Latin.", "w/skills/old/SKILL.md": skill("old")})
    script = [Answer("Salve."), Answer("Adhuc Latine."), Answer("Now English."), Answer("Still English.")]
    async with stage(place, script, context=DirectoryContext(tmp_path / "w"), system="You are terse.") as scene:
        engine = scene.engine
        chat = await scene.start("Hello")
        await scene.settled(chat)
        put(tmp_path, {"w/AGENTS.md": "Answer in English."})
        (tmp_path / "w/skills/old/SKILL.md").unlink()

        # The worker looks when it begins to run the chat. It marks and does no more: what the model reads stays.
        await engine.send_message(chat, "And now?")
        control = await scene.until(chat, lambda control: control.context_stale_since is not None)
        await scene.settled(chat)
        assert (await engine.context(chat)).dirty
        assert await marks(scene, chat) == ["stale"]
        assert "Answer in Latin." in prompts(scene)[1]
        assert "old" in prompts(scene)[1]

        receipt = await engine.refresh_context(chat, command_id="refresh-1")
        assert (await engine.refresh_context(chat, command_id="refresh-1")).version == receipt.version
        context = await engine.context(chat)
        assert (context.refreshing, context.stale_since) == (True, control.context_stale_since)
        await engine.send_message(chat, "And now?")
        state = await scene.settled(chat)
        assert (state.control.context_stale_since, state.control.context_refresh_at) == (None, None)
        last = prompts(scene)[2]
        assert "Answer in English." in last
        assert "Answer in Latin." not in last
        assert "available-skills" not in last
        assert last.index("You are terse.") < last.index("Answer in English.")
        context = await engine.context(chat)
        assert (context.dirty, context.refreshing) == (False, False)
        assert context.resources == (ContextResource(path="AGENTS.md", status="ok"),)
        (decision,) = [
            each.event.decision.facts
            for each in await engine.events(chat)
            if isinstance(each.event, v.AttemptStarted) and each.event.decision.facts.get("refresh")
        ]
        assert decision["source"] == "directory"

        await engine.send_message(chat, "And now?")
        await scene.settled(chat)
        assert [each.event.type for each in await engine.events(chat)].count("context_persisted") == 2
        assert await marks(scene, chat) == ["stale", "refresh"]
        await check(scene, chat)


async def test_a_turn_that_runs_collects_anew_before_its_next_step(place: Place, tmp_path: Path) -> None:
    put(tmp_path, {"w/AGENTS.md": "Answer in Latin."})
    running: list[Scene] = []

    @tool
    async def change() -> str:
        """Change the workspace."""
        put(tmp_path, {"w/AGENTS.md": "Answer in English."})
        (scene,) = running
        await scene.engine.refresh_context(next(iter(scene.watchers)))
        return "changed"

    script = [Answer([ToolCall("change", {})]), Answer("Done.")]
    async with stage(place, script, tools=[change], context=DirectoryContext(tmp_path / "w")) as scene:
        running.append(scene)
        chat = await scene.start(None)
        await scene.engine.send_message(chat, "Change it")
        state = await scene.settled(chat)
        assert texts(state) == ["Done."]
        assert "Answer in Latin." in prompts(scene)[0]
        assert "Answer in English." in prompts(scene)[1]
        assert state.control.context_refresh_at is None
        await check(scene, chat)


async def test_looking_marks_and_a_directory_that_is_as_before_takes_the_mark_back(url: str, tmp_path: Path) -> None:
    place = Place(provider="openai-chat", url=url, agent=f"agent-{tmp_path.name}")
    put(tmp_path, {"w/AGENTS.md": "One."})
    async with stage(place, [Answer("Yes.")], context=DirectoryContext(tmp_path / "w")) as scene:
        engine = scene.engine
        chat = await scene.start(None)
        assert await engine.context(chat, look=True) == ChatContext()
        await engine.send_message(chat, "Hello")
        state = await scene.settled(chat)
        before = state.control.updated_at
        assert not (await engine.context(chat, look=True)).dirty
        put(tmp_path, {"w/AGENTS.md": "Two."})
        assert not (await engine.context(chat)).dirty
        marked = await engine.context(chat, look=True)
        assert marked.dirty
        assert (marked.looked, (await engine.context(chat)).looked) == (True, False)
        async with Engine(url, worker=False) as other:
            with pytest.raises(UnknownAgent, match="made without agents"):
                await other.context(chat, look=True)
            assert (await other.context(chat)).dirty
        assert (await engine.context(chat, look=True)).stale_since == marked.stale_since
        put(tmp_path, {"w/AGENTS.md": "One."})
        assert not (await engine.context(chat, look=True)).dirty
        assert await marks(scene, chat) == ["stale", "fresh"]
        # What a machine finds out moves no chat in a list.
        assert (await engine.state(chat)).control.updated_at == before
        await engine.archive(chat)
        put(tmp_path, {"w/AGENTS.md": "Three."})
        assert not (await engine.context(chat, look=True)).dirty
        with pytest.raises(TransitionNotAllowed):
            await engine.refresh_context(chat)
        await check(scene, chat)


async def test_what_cannot_be_refreshed_is_refused(tmp_path: Path) -> None:
    agents = [Agent(name="none", model="scripted"), Agent(name="some", model="scripted", context=StaticContext([]))]
    async with Engine(f"sqlite:///{tmp_path}/chats.db", agents, worker=False, settings=SETTINGS) as engine:
        chat = (await engine.create_chat("none")).chat
        with pytest.raises(TransitionNotAllowed, match="has no context source"):
            await engine.refresh_context(chat)
        other = (await engine.create_chat("some")).chat
        await engine.refresh_context(other)
        assert (await engine.context(other)).refreshing


class Failing:
    """A source that cannot say whether its context is stale."""

    name = "failing"
    revision = None

    async def collect(self, chat: ChatId) -> Context:
        return Context()

    async def revision_for(self, chat: ChatId) -> str:
        raise OSError(f"the disk of {chat} is gone")


async def test_a_source_that_cannot_say_whether_its_context_is_stale_stops_no_turn(tmp_path: Path) -> None:
    place = Place(provider="openai-chat", url=f"sqlite:///{tmp_path}/chats.db", agent="agent")
    async with stage(place, [Answer("One."), Answer("Two.")], context=Failing()) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        await scene.engine.send_message(chat, "Again")
        assert texts(await scene.settled(chat)) == ["One.", "Two."]
        with pytest.raises(OSError, match="is gone"):
            await scene.engine.context(chat, look=True)
        await check(scene, chat)


async def test_an_empty_context_replaces_the_one_before(tmp_path: Path) -> None:
    place = Place(provider="openai-chat", url=f"sqlite:///{tmp_path}/chats.db", agent="agent")
    put(tmp_path, {"w/AGENTS.md": "Answer in Latin."})
    async with stage(place, [Answer("Salve."), Answer("Hello.")], context=DirectoryContext(tmp_path / "w")) as scene:
        chat = await scene.start("Hello")
        await scene.settled(chat)
        (tmp_path / "w/AGENTS.md").unlink()
        await scene.engine.refresh_context(chat)
        await scene.engine.send_message(chat, "Again")
        await scene.settled(chat)
        assert "workspace-context" not in json.dumps(prompts(scene)[1])
        await check(scene, chat)


def test_an_agent_gets_the_tools_of_its_source_once(tmp_path: Path) -> None:
    agent = Agent(name="a", model="scripted", context=DirectoryContext(tmp_path))
    again = Agent(name="b", model="scripted", context=agent.context, tools=agent.tools)
    assert (
        [each.name for each in agent.tools] == [each.name for each in again.tools] == ["read_skill", "read_skill_file"]
    )
