"""The picture of what a corpus covers: states down, triggers across, a number for how often each was taken. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from xml.sax.saxutils import escape

from chatfold.corpus.coverage import Coverage, parted, possible

_LEFT, _TOP, _CELL = 70, 150, 24
_STYLE: Final = """
text { font: 11px system-ui, sans-serif; fill: #222 }
.taken { fill: #bfe3c5 } .never { fill: #f3b8b0 } .count { text-anchor: middle; font-size: 9px }
@media (prefers-color-scheme: dark) {
  svg { background: #111 } text { fill: #ddd } .taken { fill: #1f5c33 } .never { fill: #7a2a22 }
}
"""


def coverage_svg(coverage: Coverage) -> str:
    """Return the picture as SVG: green where logs took a transition, red where none did."""
    cells: dict[tuple[str, str], list[int]] = {}
    seen = coverage.of("transition")
    for name in possible()["transition"]:
        edge = parted(name)
        cells.setdefault((edge.source, edge.trigger), []).append(seen.get(name, 0))
    states = list(dict.fromkeys(state for state, _ in cells))
    triggers = list(dict.fromkeys(trigger for _, trigger in cells))
    width, height = _LEFT + _CELL * len(triggers) + 20, _TOP + _CELL * len(states) + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f"<style>{_STYLE}</style>",
        *_heads(states, triggers),
        *_cells(cells, states, triggers),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _heads(states: list[str], triggers: list[str]) -> Iterator[str]:
    for row, state in enumerate(states):
        yield f'<text x="10" y="{_TOP + row * _CELL + 16}">{escape(state)}</text>'
    for column, trigger in enumerate(triggers):
        x, y = _LEFT + column * _CELL + 15, _TOP - 8
        yield f'<text transform="translate({x} {y}) rotate(-60)">{escape(trigger)}</text>'


def _cells(cells: Mapping[tuple[str, str], list[int]], states: list[str], triggers: list[str]) -> Iterator[str]:
    for (state, trigger), counts in cells.items():
        x, y = _LEFT + triggers.index(trigger) * _CELL, _TOP + states.index(state) * _CELL
        kind, total = "taken" if all(counts) else "never", sum(counts)
        title = f"{state} {trigger}: {total} times, {sum(map(bool, counts))} of {len(counts)} outcomes"
        yield f'<rect class="{kind}" x="{x + 1}" y="{y + 1}" width="{_CELL - 2}" height="{_CELL - 2}" rx="3">'
        yield f"<title>{escape(title)}</title></rect>"
        if total:
            yield f'<text class="count" x="{x + _CELL / 2:g}" y="{y + 15}">{total if total < 1000 else "999+"}</text>'
