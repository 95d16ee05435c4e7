"""The debugger's own widget: a timeline of any length, of which the lines in view alone are made."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.style import Style
from rich.text import Text
from textual import events as terminal
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from chatfold.stepper.longlog import NotReadYet
from chatfold.stepper.model import Stepper
from chatfold.stepper.views import failed, row
from events.errors import EventsError

_HERE: Final = Style(reverse=True)
_MARKED: Final = Style(underline=True)
_NOWHERE: Final = "     0 before the first event"


class Timeline(ScrollView, can_focus=True):
    """The events of a log, one a line, the current one lit; line 0 is before the first.

    Args:
        stepper: The walk that is shown.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,right,j", "app.step(1)", "forward", show=False),
        Binding("up,left,k", "app.step(-1)", "back", show=False),
        Binding("pagedown", "app.page(1)", "page forward", show=False),
        Binding("pageup", "app.page(-1)", "page back", show=False),
        Binding("home", "app.go_to(0)", "start", show=False),
        Binding("end", "app.go_to_end", "end", show=False),
    ]

    class Chosen(Message):
        """A line was clicked.

        Args:
            version: Which.
        """

        def __init__(self, version: int) -> None:
            super().__init__()
            self.version: Final = version

    def __init__(self, stepper: Stepper) -> None:
        super().__init__(id="timeline")
        self._stepper: Final = stepper

    def show(self) -> None:
        """Show the current version, in the middle where it was not in view."""
        if not self.size.height:
            return  # not laid out yet
        self.virtual_size = Size(self.size.width, self._stepper.last + 1)
        version, top, height = self._stepper.version, self.scroll_offset.y, self.size.height
        if not top <= version < top + height:
            self.scroll_to(y=max(0, version - height // 2), animate=False, force=True, immediate=True)
        self.refresh()

    def on_resize(self, _: terminal.Resize) -> None:
        """Keep the current version in view."""
        self.show()

    def on_click(self, event: terminal.Click) -> None:
        """Go to the line that was clicked."""
        version = event.y + self.scroll_offset.y
        if version <= self._stepper.last:
            self.post_message(self.Chosen(version))

    def render_line(self, y: int) -> Strip:
        """Return one line in view."""
        version, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if version > self._stepper.last:
            return Strip.blank(width, self.rich_style)
        text = self._line(version, width)
        text.end = ""
        if version == self._stepper.version:
            text = Text(text.plain, end="")  # colours of the parts cannot be read on the lit line
        strip = Strip(list(text.render(self.app.console))).adjust_cell_length(width)
        if version == self._stepper.mark:
            strip = strip.apply_style(_MARKED)
        return strip.apply_style(_HERE if version == self._stepper.version else self.rich_style)

    def _line(self, version: int, width: int) -> Text:
        if version == 0:
            return Text(_NOWHERE, "dim")
        try:
            return row(self._stepper.points.recorded(version, content=False), width)
        except NotReadYet:
            return Text(f"{version:>6} ...", "dim")
        except EventsError as error:
            return failed(error, f"{version:>6} ")
