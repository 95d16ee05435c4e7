"""What users do in random conversations, beside what those of simulated worlds do."""

from __future__ import annotations

import asyncio
from typing import Final

from chatfold.engine import Engine
from chatfold.testing.conversations.agents import MODELS, PDF, PNG
from chatfold.testing.simulation.users import Action, Habits, Town
from events.content import Content
from events.control import Control
from events.ids import ChatId
from events.parts import FilePart, Part, TextPart

_EFFORTS: Final = ("minimal", "low", "high", "max")


async def _switch(town: Town, chat: ChatId, control: Control) -> None:
    """Choose another model for the chat."""
    agent, model = control.agent, town.random.choice(MODELS[control.agent or "plain"])
    await town.command(
        chat, f"let {agent} ask {model}", lambda engine, id_: engine.set_model(chat, model, command_id=id_)
    )


async def _hand_over(town: Town, chat: ChatId, control: Control) -> None:
    """Hand the chat to another agent, which forgets nothing that the first one's services have searched."""
    agent = town.random.choice([name for name in MODELS if name != control.agent])
    await town.command(chat, f"hand over to {agent}", lambda engine, id_: _handed(engine, chat, agent, id_))


async def _handed(engine: Engine, chat: ChatId, agent: str, identity: str) -> None:
    await engine.set_model(chat, None, command_id=f"{identity}.model")
    await engine.set_agent(chat, agent, command_id=identity)


async def _there_and_back(town: Town, chat: ChatId, control: Control) -> None:
    """Have the chat compacted, and a while later not."""
    await town.command(chat, "compact", lambda engine, id_: engine.compact(chat, command_id=id_))
    await asyncio.sleep(town.random.random() * 4.0)
    await town.command(chat, "uncompact", lambda engine, id_: engine.uncompact(chat, command_id=id_))


async def _send_more(town: Town, chat: ChatId, control: Control) -> None:
    """Send a message with a file, an effort or a model of its turn."""
    text, random = f"see {town.sent}", town.random
    parts: list[Part] = [TextPart(text=Content(text))]
    if random.random() < 0.6:
        data, kind = random.choice(((PNG, "image/png"), (PDF, "application/pdf"), (b"a,b", "text/csv")))
        parts.append(FilePart.of(data, kind))
    effort = random.choice((None, *_EFFORTS))
    model = random.choice((None, random.choice(MODELS[control.agent or "plain"])))
    await town.command(
        chat,
        f"send {len(parts)} parts with effort {effort} and model {model}",
        lambda engine, id_: engine.send_message(chat, parts, effort=effort, model=model, command_id=id_),
    )


async def _rewrite_queued(town: Town, chat: ChatId, control: Control) -> None:
    """Rewrite a queued message, with another effort, or none."""
    if not control.queue:
        return
    target, text = town.random.choice(control.queue).id, f"queued anew {town.sent}"
    effort = town.random.choice((None, *_EFFORTS))
    await town.command(
        chat,
        f"rewrite {target} in the queue with effort {effort}",
        lambda engine, id_: engine.edit_queued(chat, target, text, effort=effort, command_id=id_),
    )


async def _reorder(town: Town, chat: ChatId, control: Control) -> None:
    """Put the queue in another order."""
    order = [item.id for item in control.queue]
    town.random.shuffle(order)
    if order:
        await town.command(
            chat, f"reorder {order}", lambda engine, id_: engine.reorder_queue(chat, order, command_id=id_)
        )


_MORE: Final[dict[str, Action]] = {
    "switch": _switch,
    "hand over": _hand_over,
    "there and back": _there_and_back,
    "send more": _send_more,
    "rewrite queued": _rewrite_queued,
    "reorder": _reorder,
}
HABITS: Final = Habits(
    busy=(
        ("send", 3.0), ("send interrupting", 4.0), ("interrupt", 5.0), ("edit", 3.0), ("promote", 1.0),
        ("fork", 0.5), ("erase", 0.5), ("switch", 2.0), ("send more", 3.0), ("rewrite queued", 2.0), ("reorder", 1.0),
        ("delete queued", 1.0),
    ),
    idle=(
        ("send", 9.0), ("send more", 5.0), ("edit", 3.0), ("resume", 2.0), ("compact", 2.0), ("there and back", 3.0),
        ("clear", 0.5), ("fork", 1.0), ("erase", 2.0), ("switch", 4.0), ("hand over", 1.0), ("unarchive", 0.2),
    ),
    more=_MORE,
)  # fmt: skip
