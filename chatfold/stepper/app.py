"""The debugger in a terminal: keys to moves of the model, and the model to panes. Nothing is decided here.

What takes long (searching, building a prompt, folding and checking a long log) runs in threads; what they find is shown
when it is there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Footer, Input, Static, TabbedContent, TabPane
from textual.worker import get_current_worker

from chatfold.replaying.conditions import Condition, ConditionError
from chatfold.stepper import views
from chatfold.stepper.as_test import as_test
from chatfold.stepper.following import EVERY_SECONDS, StoredChat
from chatfold.stepper.jumps import JUMPS, Direction, find, to_text, to_trigger
from chatfold.stepper.model import Stepper
from chatfold.stepper.panes import Timeline
from chatfold.stepper.prompt_view import PromptHead, prompt
from chatstate.errors import Refusal
from events.errors import EventsError
from store.errors import StoreError

CHUNK: Final = 4_000
"""Events that are folded before it is shown how far it is."""

_CSS: Final = """
#timeline { width: 46%; border-right: solid $primary; scrollbar-size: 0 1; }
.-narrow #timeline { width: 36; }
#machine { height: auto; padding: 0 1; border-bottom: solid $primary; }
.-short #machine { border-bottom: none; }
TabPane { padding: 0 1; }
VerticalScroll { scrollbar-size: 0 1; }
#asking { display: none; height: 1; }
#asking.-open { display: block; }
#question { width: auto; padding: 0 0 0 1; color: $accent; }
#ask { width: 1fr; height: 1; border: none; }
#status { height: auto; max-height: 3; }
#keys { display: none; layer: above; dock: top; height: 1fr; padding: 1 2; background: $surface; }
#keys.-open { display: block; }
Screen { layers: below above; }
"""


_WIDTHS: list[tuple[int, str]] | None = [(0, "-narrow"), (100, "-wide")]
_HEIGHTS: list[tuple[int, str]] | None = [(0, "-short"), (32, "-tall")]


class _Pane(NamedTuple):
    """A tab: what it is called, its key, and what it shows."""

    title: str
    key: str
    show: Callable[[Stepper], Text]


_PANES: Final[Mapping[str, _Pane]] = MappingProxyType(
    {
        "changed": _Pane("Changed", "1", views.changed),
        "state": _Pane("State", "2", lambda stepper: views.state(stepper.state, stepper.error())),
        "event": _Pane("Event", "3", lambda stepper: views.event(stepper.event)),
        "prompt": _Pane("Prompt", "4", lambda _: Text("building the prompt ...", "dim")),
    }
)


class _Ask(NamedTuple):
    """A question: what stands before the answer, and in its place while there is none."""

    question: str
    hint: str


_ASKS: Final[Mapping[str, _Ask]] = MappingProxyType(
    {
        "version": _Ask("go to version", "a number"),
        "text": _Ask("find text", "in texts, arguments and results"),
        "transition": _Ask("next transition", "such as send or finish_turn"),
        "breakpoint": _Ask("break where", "such as: status == error and tokens > 1000"),
    }
)


class StepApp(App[None]):
    """The debugger.

    Args:
        stepper: The walk to show.
        source: The file that a copied test reads.
        chat: The chat of a store that is read meanwhile; None for a file.
        follow: Whether what the chat does from now on is shown too.
    """

    CSS = _CSS
    TITLE = "chatfold step"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    VERTICAL_BREAKPOINTS = _HEIGHTS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "jump('decision', 1)", "decision"),
        Binding("e", "jump('error', 1)", "error"),
        Binding("o", "jump('tool', 1)", "tool"),
        Binding("D", "jump('decision', -1)", "decision before", show=False),
        Binding("E", "jump('error', -1)", "error before", show=False),
        Binding("O", "jump('tool', -1)", "tool before", show=False),
        Binding("t", "ask('transition')", "transition", show=False),
        Binding("slash", "ask('text')", "find", key_display="/"),
        Binding("n", "again(1)", "again", show=False),
        Binding("N", "again(-1)", "again, back", show=False),
        Binding("g", "ask('version')", "go to", show=False),
        Binding("b", "ask('breakpoint')", "break"),
        Binding("c", "go_on(1)", "run"),
        Binding("C", "go_on(-1)", "run back", show=False),
        Binding("m", "mark", "mark"),
        Binding("y", "copy_test", "as test"),
        Binding("escape", "leave", "leave", show=False),
        Binding("question_mark", "keys", "keys", key_display="?"),
        Binding("q", "quit", "quit"),
        *(Binding(pane.key, f"pane('{name}')", pane.title, show=False) for name, pane in _PANES.items()),
    ]

    def __init__(self, stepper: Stepper, source: str, chat: StoredChat | None = None, *, follow: bool = False) -> None:
        super().__init__()
        self.stepper: Final = stepper
        self._source: Final = source
        self._chat: Final = chat
        self._follow: Final = follow and chat is not None
        self._asked = "version"
        self._sought: Condition | None = None
        self._fault: str | None = None
        self._building: Final = threading.Lock()
        self._folded = False

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        with Horizontal():
            yield Timeline(self.stepper)
            with Vertical():
                yield Static(id="machine")
                with TabbedContent(id="panes"):
                    for name, pane in _PANES.items():
                        with TabPane(f"{pane.key} {pane.title}", id=name), VerticalScroll():
                            yield Static(id=f"{name}-text")
        with Horizontal(id="asking"):
            yield Static(id="question")
            yield Input(id="ask")
        yield Static(id="status")
        yield Footer(compact=True)
        with VerticalScroll(id="keys"):
            yield Static(views.keys())

    def on_mount(self) -> None:
        """Show the first screen, and begin what takes long."""
        self.query_one(Timeline).focus()
        self.show()
        if self._chat is None:
            self.run_worker(self._fold, thread=True, group="fold")
        else:
            self.run_worker(self._read(self._chat), group="read")
        if self._follow:
            self.set_interval(EVERY_SECONDS, self.action_follow)

    def show(self) -> None:
        """Show where the model stands."""
        self.query_one(Timeline).show()
        try:
            self._show_state()
        except (EventsError, ValueError) as error:
            self.stepper.said = str(error)
            self._pane_text.update(views.failed(error))
        line = views.status_line(self.stepper, self._fault, following=self._follow)
        self.query_one("#status", Static).update(line)

    @property
    def _pane(self) -> str:
        """The name of the pane in front."""
        return self.query_one(TabbedContent).active or "changed"

    @property
    def _pane_text(self) -> Static:
        return self.query_one(f"#{self._pane}-text", Static)

    def _show_state(self) -> None:
        stepper = self.stepper
        text = self._pane_text
        if not stepper.ready:
            text.update(
                Text(f"reading: {min(stepper.points.caught_up, stepper.log.read_to)} of {stepper.last} events", "dim")
            )
            return
        self.query_one("#machine", Static).update(views.machine(stepper.state.control, stepper.event))
        text.update(_PANES[self._pane].show(stepper))
        if self._pane == "prompt":
            build = partial(self._build, stepper.version, stepper.declared())
            self.run_worker(build, thread=True, exclusive=True, group="prompt")

    def on_tabbed_content_tab_activated(self) -> None:
        """Fill the tab that came to the front."""
        self.show()

    def on_timeline_chosen(self, chosen: Timeline.Chosen) -> None:
        """Go where was clicked."""
        self.action_go_to(chosen.version)

    def action_step(self, by: int) -> None:
        """Go forward or back."""
        self.stepper.step(by)
        self.show()

    def action_page(self, direction: int) -> None:
        """Go a page forward or back."""
        self.action_step(direction * max(1, self.query_one(Timeline).size.height - 1))

    def action_go_to(self, version: int) -> None:
        """Go to a version."""
        self.stepper.go(version)
        self.show()

    def action_go_to_end(self) -> None:
        """Go to the last version."""
        self.action_go_to(self.stepper.last)

    def action_pane(self, name: str) -> None:
        """Bring a tab to the front."""
        self.query_one(TabbedContent).active = name
        self.show()

    def action_mark(self) -> None:
        """Compare with this version from now on."""
        self.stepper.toggle_mark()
        self.show()

    def action_jump(self, name: str, direction: Direction) -> None:
        """Go to the next decision, error or tool."""
        self._seek(JUMPS[name], direction)

    def action_again(self, direction: Direction) -> None:
        """Search once more for what was sought last."""
        if self._sought is not None:
            self._seek(self._sought, direction)

    def action_go_on(self, direction: Direction) -> None:
        """Go on to the breakpoint."""
        if self.stepper.breakpoint is None:
            self.action_ask("breakpoint")
        else:
            self._seek(self.stepper.breakpoint, direction)

    def action_copy_test(self) -> None:
        """Put the moment into the clipboard, as a test."""
        try:
            moment = self.stepper.moment()
        except (EventsError, ValueError):  # it is told as the state of this version
            self.show()
            return
        if moment is None:
            self.stepper.said = "before the first event there is nothing to test"
        else:
            self.copy_to_clipboard(as_test(moment, self.stepper.log.name, self._source))
            self.stepper.said = f"copied a test of version {moment.recorded.version} that reads {self._source}"
        self.show()

    def action_ask(self, what: str) -> None:
        """Ask for a version, a text, a transition or a breakpoint."""
        self._asked = what
        ask = self.query_one("#ask", Input)
        ask.placeholder, ask.value = _ASKS[what].hint, ""
        self.query_one("#question", Static).update(_ASKS[what].question)
        if what == "breakpoint" and self.stepper.breakpoint is not None:
            ask.value = self.stepper.breakpoint.text
        self.query_one("#asking").add_class("-open")
        ask.focus()

    def action_keys(self) -> None:
        """Show what each key does; the same key, or escape, leads back."""
        keys = self.query_one("#keys")
        keys.toggle_class("-open")
        (keys if keys.has_class("-open") else self.query_one(Timeline)).focus()

    def action_leave(self) -> None:
        """Leave the question, or the keys, back to the timeline."""
        for each in ("#asking", "#keys"):
            self.query_one(each).remove_class("-open")
        self.query_one(Timeline).focus()

    def on_input_submitted(self, submitted: Input.Submitted) -> None:
        """Do what was asked for; where it cannot be read, say why and keep the question."""
        value = submitted.value.strip()
        try:
            self._answer(value)
        except ConditionError as error:
            self.stepper.said = (
                f"character {error.place + 1}: {error.why}" if self._asked == "breakpoint" else error.why
            )
            self.show()
        else:
            self.action_leave()

    def _answer(self, value: str) -> None:
        if self._asked == "version":
            if value.isdecimal():
                self.stepper.go(int(value))
            else:
                self.stepper.said = f"a version is a number, which {value!r} is not"
            self.show()
        elif self._asked == "breakpoint":
            self.stepper.break_at(value)
            self.show()
        elif value:
            self._seek(to_trigger(value) if self._asked == "transition" else to_text(value), 1)

    def _seek(self, condition: Condition, direction: Direction) -> None:
        self._sought = condition
        self.stepper.said = f"looking for {condition.text} ..."
        self.show()
        start = self.stepper.version
        self.run_worker(partial(self._find, condition, start, direction), thread=True, exclusive=True, group="find")

    def _find(self, condition: Condition, start: int, direction: Direction) -> None:
        worker, error = get_current_worker(), ""
        try:
            found = find(self.stepper.points, condition, start, direction)
        except (EventsError, ValueError) as problem:
            found, error = None, str(problem)
        if not worker.is_cancelled:
            self.call_from_thread(self._found, found, condition, direction, error)

    def _found(self, found: int | None, condition: Condition, direction: Direction, error: str) -> None:
        self.stepper.arrive(found, condition, direction)
        self.stepper.said = error or self.stepper.said
        self.show()

    def _build(self, version: int, declared: PromptHead) -> None:
        worker = get_current_worker()
        with self._building:
            if worker.is_cancelled:
                return
            try:
                text = prompt(self.stepper.prompt(version), declared)
            except (EventsError, ValueError) as error:
                text = views.failed(error)
        if not worker.is_cancelled:
            self.call_from_thread(self._built, text)

    def _built(self, text: Text) -> None:
        said = self.query_one("#prompt-text", Static)
        said.update(text)
        # What the model answers to stands at the end.
        self.query_one("#prompt VerticalScroll", VerticalScroll).scroll_end(animate=False)

    async def _read(self, chat: StoredChat) -> None:
        """Read the rest of a chat in a store, and fold what is there; then it is as any log."""
        points = self.stepper.points
        try:
            async for read_to in chat.rest():
                await asyncio.to_thread(points.catch_up, max(0, read_to - points.caught_up))
                self.show()
        except (EventsError, Refusal, StoreError, ValueError) as error:
            self._checked(str(error))
        else:
            self.run_worker(self._fold, thread=True, group="fold")

    def _fold(self) -> None:
        """Fold the log, and then look whether it is as it was written."""
        worker, points = get_current_worker(), self.stepper.points
        try:
            while not worker.is_cancelled and not points.catch_up(CHUNK):
                self.call_from_thread(self.show)
            fault = None if worker.is_cancelled else self.stepper.log.fault()
        except (EventsError, ValueError) as error:
            fault = str(error)
        if not worker.is_cancelled:
            self.call_from_thread(self._checked, fault)

    def _checked(self, fault: str | None) -> None:
        self._folded, self._fault = True, fault
        self.show()

    async def action_follow(self) -> None:
        """Read what the chat did since; who stood at its end stays there."""
        if self._chat is None:
            return
        at_end = self.stepper.version == self.stepper.last
        try:
            if not await self._chat.more():
                return
        except StoreError as error:
            self.stepper.said = str(error)
        if self._folded:
            self.stepper.points.catch_up()
        if at_end:
            self.stepper.go(self.stepper.last)
        self.show()
