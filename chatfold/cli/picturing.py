"""``graph --svg``, ``graph --timeline`` and ``report``: pictures of chats, to stdout or into a file."""

from __future__ import annotations

from pathlib import Path

from chatfold.cli.guard import UsageProblem
from chatfold.cli.output import Out
from chatfold.cli.shapes import GraphText
from chatfold.cli.sources import opened, opened_with_fault
from chatfold.pictures.gantt import timeline_svg
from chatfold.pictures.machine import machine_svg, way_of
from chatfold.pictures.report import report_html
from chatfold.pictures.spans import spans
from chatstate.diagram import Over


def run_picture(
    out: Out,
    source: str | None,
    output: Path | None,
    *,
    over: Over,
    times: bool,
    timeline: bool,
    json: bool,
    db: str | None,
    log_level: str | None,
) -> None:
    """Draw the machine, a chat's way through it, or where its time went, as SVG; see the command ``graph``.

    Raises:
        UsageProblem: Times or a timeline are asked for, and no chat is named.
        OSError: The file cannot be written.
        typer.Exit: With 1, where the log is not as it was written.
    """
    if source is None:
        if times or timeline:
            raise UsageProblem("--times and --timeline draw a chat: name a log file or a chat's id")
        _put(out, machine_svg(over), output, json=json)
        return
    with opened(out, source, db, log_level) as log:
        recorded = list(log.bare())
        drawn = (
            timeline_svg(list(spans(recorded))) if timeline else machine_svg(over, way_of(recorded, over), times=times)
        )
        _put(out, drawn, output, json=json)


def run_report(out: Out, source: str, output: Path | None, *, db: str | None, log_level: str | None) -> None:
    """Write the report of a chat; see the command.

    Raises:
        OSError: The file cannot be written.
        typer.Exit: With 1, where the log is not as it was written.
    """
    with opened_with_fault(out, source, db, log_level) as (log, fault):
        said = None if fault is None else f"This log {fault}"
        write(out, report_html(log.recorded(), altered=said), output)


def _put(out: Out, drawn: str, output: Path | None, *, json: bool) -> None:
    if json:
        out.data.json(GraphText(format="svg", text=drawn))
    else:
        write(out, drawn + "\n", output)


def write(out: Out, text: str, output: Path | None) -> None:
    """Write a text into a file, or to stdout where none is named.

    Raises:
        OSError: The file cannot be written.
    """
    if output is None:
        out.data.lines(text.encode())
    else:
        output.write_text(text, encoding="utf-8")
        out.note(f"wrote {output}")
