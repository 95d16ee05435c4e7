"""Showing a chat as it happens: live parts as they come, then what was committed.

Owns how parts and events become text or JSON. Parts are a preview: what was committed counts, so what was not shown
before its commit is shown then, and what was shown and is not kept is said to be void.
"""

from __future__ import annotations

from typing import Protocol

from chatfold.cli.output import Channel, one_line, printable
from chatfold.cli.shapes import PartLine, ResetLine
from chatfold.cli.timeline import line_of, said_of, text_of
from chatfold.stream import EventItem, PartItem, StreamItem
from events.effects import Effects
from events.envelope import Recorded
from events.messages import Message
from events.parts import TextPart, ToolCallPart
from events.vocabulary import (
    InterruptionFinished,
    RetryScheduled,
    StepCommitted,
    ToolResultRecorded,
    TurnFailed,
    TurnFinished,
)
from generation.parts import LiveCall, LivePart, LiveReasoning, LiveText

WIDTH = 200


class Printer(Protocol):
    """Shows what happens."""

    def show(self, item: StreamItem) -> None:
        """Show one item of a stream."""
        ...

    def note(self, text: str) -> None:
        """Say something on the way."""
        ...

    def pause(self) -> None:
        """End the line that is being written: somebody else has something to say."""
        ...


class JsonPrinter:
    """Writes every item as a line of JSON.

    Args:
        data: Where to.
        talk: Where notes go.
    """

    def __init__(self, data: Channel, talk: Channel) -> None:
        self._data = data
        self._talk = talk

    def show(self, item: StreamItem) -> None:
        """Write an item."""
        if isinstance(item, EventItem):
            self._data.json(line_of(item.recorded))
        elif isinstance(item, PartItem):
            self._data.json(PartLine(cursor=item.cursor, part=item.part))
        else:
            self._data.json(ResetLine(cursor=item.cursor))

    def note(self, text: str) -> None:
        """Say something on stderr."""
        self._talk.line(printable(text))

    def pause(self) -> None:
        """Do nothing: every line is whole."""


class TextPrinter:
    """Shows answers as text on one channel and everything else as notes on the other.

    Args:
        data: Where answers go.
        talk: Where notes go.
        label: What stands before an answer.
    """

    def __init__(self, data: Channel, talk: Channel, *, label: str = "") -> None:
        self._data = data
        self._talk = talk
        self._label = label
        self._open: Channel | None = None
        self._fresh = True
        self._shown = ""
        self._block: int | None = None
        self._calls = 0

    def show(self, item: StreamItem) -> None:
        """Show an item."""
        if isinstance(item, PartItem):
            self._part(item.part)
        elif isinstance(item, EventItem):
            self._event(item.recorded)
        else:
            self._void()

    def note(self, text: str) -> None:
        """Say something, on a line of its own."""
        self.pause()
        self._talk.put(printable(text), style="dim", end="\n")

    def _part(self, part: LivePart) -> None:
        match part:
            case LiveText(text=text, block=block):
                if self._block not in (None, block):
                    self.pause()
                self._block = block
                self._answer(text)
            case LiveReasoning(text=text):
                self._put(self._talk, text, style="dim italic")
            case LiveCall(name=name, arguments=arguments):
                self._calls += 1
                self._call(name, arguments)
            case _:
                return

    def _answer(self, text: str) -> None:
        self._shown += text
        self._put(self._data, text)

    def _put(self, channel: Channel, text: str, style: str = "") -> None:
        if self._open is not channel:
            self.pause()
            if channel is self._data and self._label:
                channel.put(self._label, style="bold green")
        channel.put(printable(text), style=style)
        self._open = channel
        self._fresh = text.endswith("\n")

    def pause(self) -> None:
        """End the line that is being written."""
        if self._open is not None and not self._fresh:
            self._open.put("\n")
        self._open = None

    def _call(self, name: str, arguments: str) -> None:
        self.note(f"[calls {name}({one_line(arguments, WIDTH)})]")

    def _event(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, StepCommitted | InterruptionFinished | TurnFailed):
            for message in event.added:
                if message.role == "assistant":
                    self._committed(message)
        elif isinstance(event, ToolResultRecorded):
            result = event.result
            what = text_of(result.output) if result.output is not None else str(result.reason)
            self.note(f"[{'failed' if result.is_error else 'result'}: {one_line(what, WIDTH)}]")
        elif isinstance(event, RetryScheduled):
            self._void()
            self.note(f"[{said_of(event.error)} Again in {event.delay_us / 1e6:g} s]")
        if isinstance(event, TurnFailed):
            self._void()
            self.note(f"[failed, {said_of(event.error)}]")
        if isinstance(event, Effects) and event.removed_from is not None:
            self._void()
        if isinstance(event, TurnFinished | InterruptionFinished):
            self.pause()
            if isinstance(event, InterruptionFinished) and not event.added:
                self.note("[interrupted]")
            if event.promoted:
                self.note("[the queued message's turn]")

    def _committed(self, message: Message) -> None:
        """Show of an answer what was not shown before it was committed."""
        texts = [text_of(part.text) for part in message.parts if isinstance(part, TextPart)]
        whole = "".join(texts)
        if whole.startswith(self._shown):
            rest = whole[len(self._shown) :]
            if rest:
                self._put(self._data, rest)
        else:
            self._void()
            self._put(self._data, "\n".join(texts))
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        for call in calls[self._calls :]:
            self._call(call.name, text_of(call.arguments))
        self.pause()
        if message.interrupted:
            self.note("[interrupted here; what was said is kept]")
        self._begin()

    def _void(self) -> None:
        if self._shown:
            self.note("[what the model said since is void]")
        self._begin()

    def _begin(self) -> None:
        self._shown, self._block, self._calls = "", None, 0
