"""Colours and type of the pictures and the report, for light and dark: one palette, in one place."""

from __future__ import annotations

from typing import Final

_LIGHT: Final = {
    "paper": "#ffffff", "panel": "#f6f7f9", "ink": "#1b2330", "soft": "#5d6878", "line": "#d5dae1",
    "quiet": "#b9c1cc", "path": "#2563c9", "error": "#c8372d",
    "pending": "#b7791f", "running": "#2563c9", "requires_action": "#8a3ec2", "waiting": "#2b8a4b",
    "model": "#2563c9", "tools": "#2b8a4b", "queue": "#b7791f", "client": "#8a3ec2", "retry": "#c8372d",
    "engine": "#7c8796", "rest": "#d5dae1",
}  # fmt: skip
_DARK: Final = {
    "paper": "#12161d", "panel": "#1a202a", "ink": "#e6eaf0", "soft": "#9aa6b6", "line": "#303947",
    "quiet": "#495467", "path": "#6ea3f5", "error": "#f0776d",
    "pending": "#dda94b", "running": "#6ea3f5", "requires_action": "#c48cf0", "waiting": "#5fc380",
    "model": "#6ea3f5", "tools": "#5fc380", "queue": "#dda94b", "client": "#c48cf0", "retry": "#f0776d",
    "engine": "#8693a5", "rest": "#303947",
}  # fmt: skip


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{colour}" for name, colour in colours.items())


COLOURS: Final = (
    f":root{{color-scheme:light dark;{_variables(_LIGHT)}}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_variables(_DARK)}}}}}"
    f"@media print{{:root{{{_variables(_LIGHT)}}}}}"
)

PICTURE: Final = (
    COLOURS + "text{font:13px system-ui,sans-serif;fill:var(--ink)}.small{font-size:11px}.soft{fill:var(--soft)}"
    ".bold{font-weight:600}.paper{fill:var(--paper)}"
    ".node{fill:var(--panel);stroke:var(--quiet);stroke-width:1.5}.node.now{stroke-width:3.5}"
    ".arc{fill:none;stroke:var(--quiet);stroke-width:1.2}.arc.taken{stroke:var(--path)}"
    ".head{fill:var(--quiet)}.head.taken{fill:var(--path)}.start{fill:var(--ink)}"
    ".off text{opacity:.55}.label{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}"
    ".taken.label{fill:var(--path);font-weight:600}.grid{stroke:var(--line);stroke-width:1}"
)

PAGE: Final = (
    PICTURE + "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}main{max-width:1080px;margin:0 auto;padding:32px 24px 64px}"
    "h1{font-size:24px;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:18px;margin:40px 0 12px}"
    ".sub{color:var(--soft);margin:0 0 20px;overflow-wrap:anywhere}"
    ".cards{display:flex;flex-wrap:wrap;gap:10px}.card{background:var(--panel);border:1px solid var(--line);"
    "border-radius:8px;padding:8px 14px;min-width:104px}.card b{display:block;font-size:17px}"
    ".card span{color:var(--soft);font-size:12px}.picture{max-width:100%;height:auto;display:block}"
    ".scroll{overflow-x:auto}.scroll .picture{min-width:720px}table{border-collapse:collapse;width:100%;font-size:13px}"
    "th{text-align:left;color:var(--soft);font-weight:500}th,td{padding:5px 10px 5px 0;vertical-align:top;"
    "border-bottom:1px solid var(--line)}td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}"
    "td.w{overflow-wrap:break-word}td.w:last-child,pre{overflow-wrap:anywhere}code,pre,td.n{font-family:ui-monospace,monospace;font-size:12.5px}"
    "pre{white-space:pre-wrap;margin:4px 0;font-size:13px}"
    ".said{border-left:3px solid var(--quiet);padding:2px 0 2px 12px;margin:12px 0}"
    ".said.user{border-color:var(--path)}.said.assistant{border-color:var(--waiting)}"
    ".said.tool{border-color:var(--requires_action)}.said b{font-size:13px}"
    ".said .meta{color:var(--soft);font-size:12px}"
    ".bad{color:var(--error)}.warn{border:1px solid var(--error);color:var(--error);border-radius:8px;padding:8px 14px;"
    "margin:12px 0}summary{cursor:pointer;color:var(--soft)}"
)
"""Style of the report; the pictures in it follow it too."""
