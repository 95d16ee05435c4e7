"""``chatfold demo``: what a newcomer watches. A real engine, a real worker and a real log; only the model is scripted.

Owns the story: what the scripted model says, and what the demo does as the user and as the client.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from chatfold.cli.asking import Answers, hand_in, questions
from chatfold.cli.live import JsonPrinter, Printer, TextPrinter
from chatfold.cli.output import Out
from chatfold.cli.places import command
from chatfold.cli.session import Session, running
from chatfold.cli.shapes import Said
from chatfold.cli.timeline import print_timeline, timeline
from chatfold.engine import Engine
from chatfold.inputs import result
from chatfold.settings import Settings
from chatfold.stream import PartItem
from generation.agents import Agent
from generation.parts import LiveText
from generation.providers.script import Say, Script, UseTool, Wait, turn
from generation.providers.scripted import ScriptedProvider
from generation.tools.contract import Tool, client_tool

CHAT = "demo"
QUESTION = "How warm is it in Oslo, and where do I live?"
SECOND = "And tell me something about event logs."


def get_temperature(city: str) -> dict[str, object]:
    """Return the temperature in a city.

    Args:
        city: Its name.
    """
    return {"city": city, "celsius": 12 if city == "Oslo" else 20}


def demo_agent() -> Agent:
    """Return the demo's agent: a local tool, and one that the client runs."""
    where = client_tool(
        "get_home_city", "Ask the user's own program where the user lives.", {"type": "object", "properties": {}}
    )
    return Agent(
        name="demo",
        model="scripted/demo",
        system="You are brief and friendly.",
        tools=[Tool.from_function(get_temperature, crash="rerun"), where],
    )


class _Never:
    """What the scripted model waits for in the middle of a sentence: it is interrupted there."""

    async def wait(self) -> None:
        await asyncio.Event().wait()


def script(queued: asyncio.Event) -> Script:
    """Return what the model says, answer by answer.

    Args:
        queued: Set when the second message is in the queue.
    """
    return (
        turn(Say("Let me look at the thermometer first. "), UseTool("get_temperature", {"city": "Oslo"})),
        turn(
            Say("12 degrees in Oslo. Where you live only your own program knows, "),
            Wait(queued),
            Say("so I ask it."),
            UseTool("get_home_city"),
        ),
        turn("So it is 12 degrees in Oslo, and you live in Bergen. Take an umbrella."),
        turn(
            Say("An event log keeps every step that was ever taken. The state of this chat is "),
            Wait(_Never()),
            Say("never said in this demo."),
        ),
        turn("nothing but the fold of its log, so any moment of it can be looked at again."),
    )


def run_demo(out: Out, *, json: bool, delay: float) -> None:
    """Run the demo.

    Args:
        out: Where it is shown.
        json: As lines of JSON.
        delay: Seconds between two pieces of the model's answers.

    Raises:
        OSError: There is no room for the database.
    """
    file = Path(tempfile.mkdtemp(prefix="chatfold-demo-")) / "chats.db"
    url = f"sqlite:///{file}"
    story = _Story(out, json=json, pause=12 * delay)
    queued = asyncio.Event()
    model = ScriptedProvider(script(queued), delay=delay)
    engine = Engine(url, [demo_agent()], providers={"scripted": model}, settings=Settings(db=url))
    story.tell(f"A chat on a fresh SQLite file, {file}. The model is scripted, everything else is real.")
    with running(engine) as session:
        story.play(session, queued)
        events = session.call(engine.events, CHAT)
    story.tell("That was the chat. Here is its log, the only truth about it:")
    if json:
        for line in timeline(events):
            out.data.json(line)
    else:
        print_timeline(out.data, timeline(events))
    story.tell(f"Now look at any moment of it: {command('replay', '--db', url, CHAT, '--at', '9')}")


class _Story:
    """Tells what the demo does, and does it."""

    def __init__(self, out: Out, *, json: bool, pause: float) -> None:
        self._out = out
        self._json = json
        self._pause = pause
        self._printer: Printer = (
            JsonPrinter(out.data, out.talk) if json else TextPrinter(out.data, out.data, label="assistant: ")
        )

    def tell(self, text: str) -> None:
        """Say what happens next."""
        if self._json:
            self._out.data.json(Said(text=text))
            return
        self._out.data.line()
        self._out.data.put(text, style="bold", end="\n")
        time.sleep(self._pause)

    def _user(self, text: str) -> None:
        if self._json:
            return
        self._out.data.put("user: ", style="bold cyan")
        self._out.data.line(text)

    def play(self, session: Session, queued: asyncio.Event) -> None:
        """Play the chat from the first message to the last answer."""
        engine = session.engine
        self.tell("1. A message. The model uses a tool that runs here, in the worker.")
        self._user(QUESTION)
        created = session.call(engine.create_chat, "demo", QUESTION, chat_id=CHAT, title="The demo")
        session.open(CHAT, 0)
        for _ in self._watch(session, created.version, until=" knows, "):
            self._printer.pause()
            self.tell("2. While it talks, another message: it waits in the queue.")
            self._user(SECOND)
            session.call(engine.send_message, CHAT, SECOND)
            session.call(_set, queued)
        state = session.state()
        self.tell("3. A tool that the client runs: the chat waits for its result. The demo plays the client: Bergen.")
        answers = Answers(results=[result(each.call, "Bergen") for each in questions(state) if each.call is not None])
        version = hand_in(session, state, answers)
        for _ in self._watch(session, version, until=" chat is "):
            self._printer.pause()
            self.tell("4. In the middle of the answer to the queued message, the user interrupts.")
            version = session.call(engine.interrupt, CHAT).version
        self.tell("5. What was said is kept. The user lets it go on.")
        for _ in self._watch(session, session.call(engine.resume, CHAT).version):
            pass

    def _watch(self, session: Session, version: int, *, until: str | None = None) -> Iterator[None]:
        """Show what happens until nothing is owed; pause, once, where an answer has come to ``until``."""
        said = ""
        for item in session.follow(version):
            self._printer.show(item)
            if isinstance(item, PartItem) and isinstance(item.part, LiveText):
                said += item.part.text
                if until is not None and said.endswith(until):
                    until = None
                    yield


async def _set(event: asyncio.Event) -> None:
    event.set()
