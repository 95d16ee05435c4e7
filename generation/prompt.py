"""Prompt assembly: a transcript in, system texts and neutral messages out. Pure.

A prompt is: the system messages of all history, the summary of the newest boundary, what follows it. Of a cleared
boundary nothing is shown: the conversation starts anew. Only what models may read enters.

What holds of every prompt: each call has exactly one result, in the tool message right after the message with the
call; ids of calls are unique; no text is blank; no message is empty; the last message is not an assistant's. How a
message is converted depends on it and on what stands before it alone, and on the results of its own calls, so a
converted prefix stays valid while messages are appended: ``Prompt`` keeps it (of messages that stand alone only where
they are: ``prompt_kept``). What is not settled yet (an answer whose calls wait for results, and all after it) is
converted for each request anew.

Messages are converted by ``generation.prompt_messages``, parts by ``generation.prompt_parts``. What a provider cannot
take (foreign reasoning, unknown file types) it leaves out itself.
"""

from __future__ import annotations

from typing import NamedTuple, final

from msgspec import Struct

from events.ids import CallKey
from events.parts import ToolResultPart
from events.shared import SharedSequence
from events.state import ChatState
from events.transcript import Messages, TranscriptMessage
from generation.digest import digest_of
from generation.digests import MessagesDigest
from generation.prompt_ids import CallIds
from generation.prompt_kept import PromptMessages, Settled, Window
from generation.prompt_messages import SystemTexts, answered, convert, stands_alone
from generation.prompt_texts import GO_ON
from generation.prompt_types import PromptMessage, PromptText


class BuiltPrompt(Struct, frozen=True, kw_only=True):
    """A prompt: the texts of the chat's system messages, the messages, and the digest of these.

    ``added``: the last message is none of history's, but an instruction or what asks the model to go on. ``kept``: the
    newest answer whose calls are answered, where its service keeps the response.
    """

    system: tuple[str, ...]
    messages: PromptMessages
    digest: str
    added: bool = False
    kept: KeptAnswer | None = None


class KeptAnswer(Struct, frozen=True, kw_only=True, gc=False):
    """An answer in a prompt whose service keeps the response.

    ``place``: where it is in history. ``before``: the digest of the prompt's messages before it. ``end``: how many of
    the prompt's messages there are up to it and the results of its calls.
    """

    place: int
    before: str
    end: int


class _Placed(NamedTuple):
    """A message, and its place in history."""

    place: int
    item: TranscriptMessage


@final
class Prompt:
    """The prompt of one chat, kept up as its history grows; where history was changed it begins anew."""

    __slots__ = (
        "_digest",
        "_ids",
        "_in_boundary",
        "_joined",
        "_kept",
        "_open",
        "_results",
        "_seen",
        "_settled",
        "_summary",
        "_system",
        "_window",
    )

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._seen = Messages()
        self._system = SystemTexts()
        self._joined: tuple[tuple[str, ...], tuple[str, ...], str] | None = None
        self._in_boundary = False
        self._summary: _Placed | None = None
        self._open_window()

    def _open_window(self, *shown: _Placed) -> None:
        """Begin the conversation anew, with ``shown``."""
        self._settled: SharedSequence[Settled] = SharedSequence()
        self._window = Window()
        self._digest = MessagesDigest()
        self._ids = CallIds()
        self._results: dict[CallKey, ToolResultPart] = {}
        self._open: list[_Placed] = []
        self._kept: KeptAnswer | None = None
        for placed in shown:
            self._show(placed)

    def build(self, messages: Messages, *, instruction: str | None = None) -> BuiltPrompt:
        """Return the prompt of a chat with this history.

        Args:
            messages: The chat's messages.
            instruction: Text of a last user message that history does not hold, such as the request for a summary.
        """
        self._catch_up(messages)
        more = self._rest()
        rest = len(more)
        if instruction is not None:
            more.append(_user(instruction))
        elif (more[-1].role if more else self._last_role()) == "assistant":
            more.append(_user(GO_ON))
        whole = PromptMessages(messages, self._settled, tuple(more), self._window)
        return BuiltPrompt(
            system=self._system.texts,
            messages=whole,
            digest=self._digest.with_more(more),
            added=len(more) > rest,
            kept=self._kept,
        )

    def system_after(self, own: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
        """Return the agent's ``own`` system texts with those of the prompt built last, and the digest of all."""
        texts, known = (*own, *self._system.texts), self._joined
        if known is None or known[0] != own or known[1] is not self._system.texts:
            known = self._joined = (own, self._system.texts, digest_of(texts))
        return texts, known[2]

    def _last_role(self) -> str | None:
        if not self._settled:
            return None
        last = self._settled[-1]
        return last.role if isinstance(last, PromptMessage) else self._seen[last].message.role

    def _catch_up(self, messages: Messages) -> None:
        if not messages.continues(self._seen):
            self._begin()
        seen = len(self._seen)
        for place, item in enumerate(messages.since(seen), seen):
            self._take(_Placed(place, item))
        self._seen = messages
        self._settle()

    def _take(self, placed: _Placed) -> None:
        message = placed.item.message
        if message.visibility != "user" and message.role == "system":
            self._system.add(message)
        if message.boundary is not None:
            self._pass_boundary(placed)
            return
        self._in_boundary = False
        if message.visibility != "user" and message.role != "system":
            self._show(placed)

    def _pass_boundary(self, placed: _Placed) -> None:
        """Show the boundary's summary, and of what came until now nothing more.

        The summary is the user message of the boundary's three messages; two boundaries may stand side by side.
        """
        if not self._in_boundary:
            self._summary = None
        self._in_boundary = True
        message = placed.item.message
        if message.role == "user":
            self._summary = placed
        if message.boundary == "chat_cleared" or self._summary is None:
            self._open_window()
        else:
            self._open_window(self._summary)

    def _show(self, placed: _Placed) -> None:
        for part in placed.item.message.parts:
            if isinstance(part, ToolResultPart):
                self._results.setdefault(part.call, part)
        self._open.append(placed)

    def _settle(self) -> None:
        """Convert for good what nothing that may come can change."""
        settled = 0
        for place, item in self._open:
            if not answered(item, self._results):
                break
            settled += 1
            alone = stands_alone(item)
            step = item.message.step
            before = None if step is None or step.kept is None else self._digest.with_more(())
            for converted in convert(item, self._results, self._ids):
                self._digest.add(converted)
                self._settled = self._settled.append(place if alone else converted)
            if item.message.role == "assistant":
                self._kept = None
                if before is not None:
                    self._kept = KeptAnswer(place=place, before=before, end=len(self._settled))
        del self._open[:settled]

    def _rest(self) -> list[PromptMessage]:
        if not self._open:
            return []
        ids = self._ids.copy()
        return [converted for _, item in self._open for converted in convert(item, self._results, ids)]


def _user(text: str) -> PromptMessage:
    return PromptMessage(role="user", parts=(PromptText(text=text),))


def build_prompt(state: ChatState, *, instruction: str | None = None) -> BuiltPrompt:
    """Build the prompt of a chat as it stands, with nothing kept of an earlier one.

    Args:
        state: The chat, with its transcript.
        instruction: See ``Prompt.build``.

    Raises:
        events.errors.TranscriptMissing: The state was loaded without its transcript.
    """
    return Prompt().build(state.need_transcript("build a prompt").messages, instruction=instruction)
