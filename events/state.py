"""ChatState: control and transcript, the value that a log folds to."""

from __future__ import annotations

from msgspec import Struct

from events.control import Control
from events.errors import TranscriptMissing
from events.ids import CallKey, message_of
from events.parts import ToolCallPart
from events.records import Spending
from events.spending import spending
from events.transcript import Messages, Transcript, empty_transcript


class ChatState(Struct, frozen=True, kw_only=True, gc=False):
    """The state of a chat after an event. ``transcript`` is None where control alone was loaded.

    ``evolve`` (``events.reducer``) makes the next state and leaves this one as it is.
    """

    control: Control
    transcript: Transcript | None

    @property
    def messages(self) -> Messages:
        """The messages in history, in order.

        Raises:
            TranscriptMissing: This state holds control alone.
        """
        return self.need_transcript("read the messages").messages

    def find_call(self, call: CallKey) -> ToolCallPart | None:
        """Return the call that an open action names: what the client is asked to run or to approve.

        Args:
            call: The key of a call, as in ``action.items``: the id of its message, and its place there.

        Returns:
            None where history has no such call.

        Raises:
            TranscriptMissing: This state holds control alone.
        """
        messages = self.messages
        found = messages.find(message_of(call))
        parts = () if found is None else messages[found].message.parts
        place = call.rpartition(".")[2]
        part = parts[int(place)] if place.isdecimal() and int(place) < len(parts) else None
        return part if isinstance(part, ToolCallPart) else None

    @property
    def spending(self) -> Spending:
        """What the chat has spent, and which limits are in force.

        These are its agent's, as the policy that was recorded last has them, and over them those that were raised.

        Raises:
            TranscriptMissing: This state holds control alone.
        """
        return spending(self.control, self.need_transcript("read the budget").policies.get(self.control.policy))

    def need_transcript(self, what: str) -> Transcript:
        """Return the transcript.

        Args:
            what: The trigger or work that needs it, for the error.

        Raises:
            TranscriptMissing: This state holds control alone.
        """
        if self.transcript is None:
            raise TranscriptMissing(what)
        return self.transcript


def initial_state() -> ChatState:
    """Return the state before the first event."""
    return ChatState(control=Control(), transcript=empty_transcript())
