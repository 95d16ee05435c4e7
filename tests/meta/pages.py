"""The documentation pages as the tests see them: code blocks, headings, links.

Owns reading Markdown, as much of it as the pages use; what must hold is said by `tests.meta.test_docs`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.meta.source import ROOT, text_files

_FENCE: Final = re.compile(r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>.*)$")
_HEADING: Final = re.compile(r"^(#{1,6})\s+(?P<title>.*?)\s*#*$")
_LINK: Final = re.compile(
    r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\((?P<target>[^()\s]+(?:\([^()]*\))?[^()\s]*)(?:\s+\"[^\"]*\")?\)"
)
_CODE_SPAN: Final = re.compile(r"(`+).+?\1")


@dataclass(frozen=True)
class Block:
    """A fenced code block.

    Attributes:
        language: First word of the fence's info, "" if there is none.
        line: Number of the first line of its text in the page.
        text: What stands between the fences, with the fence's indentation taken off.
        heading: The title that it stands under, "" before the first.
        runs: Whether a test may run it; false where the fence's info says ``not-run``.
    """

    language: str
    line: int
    text: str
    heading: str
    runs: bool = True


@dataclass(frozen=True)
class Page:
    """A Markdown page.

    Attributes:
        file: Where it is.
        blocks: Its fenced code blocks, in order.
        anchors: What `#...` in a link to it may name.
        links: (line, target) of each link outside of code.
    """

    file: Path
    blocks: tuple[Block, ...]
    anchors: frozenset[str]
    links: tuple[tuple[int, str], ...]


def page_files() -> list[Path]:
    """README.md, CHANGELOG.md and all pages below docs/."""
    tops = [ROOT / "README.md", ROOT / "CHANGELOG.md"]
    return tops + [file for file in text_files() if file.suffix == ".md" and file.relative_to(ROOT).parts[0] == "docs"]


@cache
def read(file: Path) -> Page:
    """Read a page, once."""
    return parse(file, file.read_text(encoding="utf-8"))


def parse(file: Path, source: str) -> Page:
    """Read a page's blocks, headings and links.

    Raises:
        ValueError: A code block has no end.
    """
    blocks: list[Block] = []
    anchors: dict[str, int] = {}
    links: list[tuple[int, str]] = []
    heading = ""
    lines = iter(enumerate(source.splitlines(), 1))
    for number, line in lines:
        if fence := _FENCE.match(line):
            text = "\n".join(_until_closed(lines, fence, f"{file}:{number}"))
            language, *more = fence["info"].split() or [""]
            blocks.append(Block(language, number + 1, text + "\n", heading, runs="not-run" not in more))
        elif title := _HEADING.match(line):
            heading = title["title"]
            _add_anchor(anchors, heading)
            links += _links(number, line)
        else:
            links += _links(number, line)
    return Page(file, tuple(blocks), frozenset(anchors), tuple(links))


def _until_closed(lines: Iterator[tuple[int, str]], fence: re.Match[str], where: str) -> Iterator[str]:
    closing = re.compile(rf"^ *{re.escape(fence['marks'][0])}{{{len(fence['marks'])},}} *$")
    indent = len(fence["indent"])
    for _, line in lines:
        if closing.match(line):
            return
        yield line[indent:] if not line[:indent].strip() else line
    raise ValueError(f"{where}: a code block without an end")


def _add_anchor(anchors: dict[str, int], title: str) -> None:
    """Add the anchor as GitHub makes it; the second heading of the same words gets -1, and so on."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    anchor = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
    count = anchors.get(anchor, 0)
    anchors[anchor] = count + 1
    if count:
        anchors[f"{anchor}-{count}"] = 1


def _links(number: int, line: str) -> list[tuple[int, str]]:
    return [(number, link["target"]) for link in _LINK.finditer(_CODE_SPAN.sub("", line))]
