"""ChatState: control and transcript, the value that a log folds to."""

from __future__ import annotations

from msgspec import Struct

from events.control import Control
from events.errors import TranscriptMissing
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
