"""Web searches that Anthropic's service runs within an answer: their blocks, and what of them may come back.

Owns the two blocks of a search, the contents that only the service can read, and paused answers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from chatfold.testing.servers.anthropic_shape import ServerToolUse, TextBlock, WebSearchToolResult
from chatfold.testing.servers.checks import RequestRefused
from chatfold.testing.servers.matching import ScriptError
from chatfold.testing.servers.recording import Json
from chatfold.testing.servers.script import Found, Part, Search
from chatfold.testing.servers.wire import Ids, seal

__all__ = ["IssuedSearches", "SearchCall", "SearchResults", "check_searches", "citation", "expand", "sealed"]

Placed = tuple[str, Any]
"""A block with its place."""


@dataclass(frozen=True, slots=True)
class SearchCall:
    """The block that begins a search."""

    id: str
    query: str


@dataclass(frozen=True, slots=True)
class SearchResults:
    """The block that ends a search."""

    id: str
    results: Sequence[Found]
    error: str | None

    @property
    def content(self) -> Any:
        """What the block holds."""
        if self.error is not None:
            return {"type": "web_search_tool_result_error", "error_code": self.error}
        return [
            {
                "type": "web_search_result",
                "url": found.url,
                "title": found.title,
                "encrypted_content": sealed("content", found),
                "page_age": None,
            }
            for found in self.results
        ]


@dataclass(slots=True)
class IssuedSearches:
    """What a server has given out of its searches; only this may come back."""

    contents: set[str] = field(default_factory=set)
    """Encrypted contents of results."""
    indexes: set[str] = field(default_factory=set)
    """Encrypted indexes of citations."""


def sealed(kind: str, found: Found) -> str:
    """What only the service can read of a page: its content, or the index of a citation."""
    return seal(f"{kind} {found.url} {found.title} {found.text}")


def citation(found: Found) -> Json:
    """A citation of a page."""
    return {
        "type": "web_search_result_location",
        "url": found.url,
        "title": found.title,
        "cited_text": found.text,
        "encrypted_index": sealed("index", found),
    }


def expand(parts: Sequence[Part], body: Json, ids: Ids) -> Iterator[Part | SearchCall | SearchResults]:
    """Put the two blocks of a search in its place.

    Args:
        parts: The answer's parts.
        body: The request, whose last search goes on where a part has no query.
        ids: Where the ids of searches come from.

    Raises:
        ScriptError: The request has no search that could go on.
    """
    for part in parts:
        if not isinstance(part, Search):
            yield part
            continue
        search = part.id or (ids.new("srvtoolu_") if part.query is not None else _open_search(body))
        if part.query is not None:
            yield SearchCall(search, part.query)
        if part.results is not None or part.error is not None:
            yield SearchResults(search, part.results or (), part.error)


def _open_search(body: Json) -> str:
    last = body["messages"][-1]
    blocks = last["content"] if last["role"] == "assistant" and isinstance(last["content"], list) else []
    begun = [block["id"] for block in blocks if block["type"] == "server_tool_use"]
    if not begun:
        problem = "the script goes on with a search, and the request does not end with one"
        raise ScriptError(problem)
    return str(begun[-1])


def check_searches(blocks: Sequence[Placed], issued: IssuedSearches, *, goes_on: bool) -> None:
    """Check the searches of one assistant turn.

    Args:
        blocks: The turn's blocks.
        issued: What may come back.
        goes_on: Whether the turn is a paused answer that the service is to go on with: its last search may be open.

    Raises:
        RequestRefused: A rule is broken.
    """
    begun: list[str] = []
    for place, block in blocks:
        if isinstance(block, ServerToolUse):
            begun.append(block.id)
        elif isinstance(block, WebSearchToolResult):
            if block.tool_use_id not in begun:
                _refuse(
                    f"{place}: unexpected `tool_use_id` found in `web_search_tool_result` blocks: "
                    f"{block.tool_use_id}. Each `web_search_tool_result` block must have a corresponding "
                    "`server_tool_use` block before it."
                )
            begun.remove(block.tool_use_id)
            _check_contents(place, block, issued)
        elif isinstance(block, TextBlock):
            _check_citations(place, block, issued)
    if begun and not goes_on:
        _refuse(
            f"{blocks[0][0].rpartition('.content')[0]}: `web_search` tool use with id `{begun[0]}` was found without a "
            "corresponding `web_search_tool_result` block"
        )


def _check_contents(place: str, block: WebSearchToolResult, issued: IssuedSearches) -> None:
    for at, result in enumerate(block.content if isinstance(block.content, list) else ()):
        if result.encrypted_content not in issued.contents:
            _refuse(f"{place}.content.{at}: Invalid `encrypted_content` in `search_result` block")


def _check_citations(place: str, block: TextBlock, issued: IssuedSearches) -> None:
    for at, cited in enumerate(block.citations or ()):
        if cited.get("type") != "web_search_result_location":
            continue
        if cited.get("encrypted_index") not in issued.indexes:
            _refuse(f"{place}.citations.{at}: Invalid `encrypted_index` in `web_search_result_location` block")


def _refuse(message: str) -> None:
    raise RequestRefused(message)
