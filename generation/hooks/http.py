"""Hooks that are asked over HTTP: one POST with the call as JSON, answered by JSON or by nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec

from events.errors import InvalidValue
from events.values import parse_json_strict
from generation.errors import AgentDeclarationError, HookFailed, MissingExtra
from generation.hooks.contract import MOST, HookAnswer, HookCall, HookEvent, read_answer
from generation.hooks.dispatch import checked_events, checked_timeout

if TYPE_CHECKING:
    import httpx2


class HttpHook:
    """A service as a hook.

    A call is posted as ``{"id": ..., "event": ..., "chat": ..., "facts": {...}}``. A status of 200 has an object of
    ``context``, ``deny`` and ``input``, all of them optional; 204 has none. Any other status, a redirect too, fails.

    Args:
        url: Where it is: ``http://`` or ``https://``.
        events: The events that it is asked at.
        timeout: Seconds that it has.
        headers: Sent with each call, for example an authorization.
        name: What it is called in errors and logs; None: its host. A whole address may hold secrets, and is not told.

    Raises:
        AgentDeclarationError: An event is not known, or there is none; the URL is none, or the timeout no positive
            number; the headers are no mapping; the name is no text on one line.
        MissingExtra: The client library is not installed.
    """

    def __init__(
        self,
        url: str,
        events: Iterable[HookEvent],
        *,
        timeout: float = 10.0,
        headers: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        try:
            import httpx2
        except ImportError as error:
            raise MissingExtra("hooks", "hooks") from error
        try:
            parsed = httpx2.URL(url)
        except (httpx2.InvalidURL, TypeError) as error:
            raise AgentDeclarationError("hook", f"its url is none: {error}") from None
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise AgentDeclarationError("hook", "its url must begin with http:// or https:// and name a host")
        self.name: Final = parsed.netloc.decode() if name is None else name
        given_name: object = self.name
        if not isinstance(given_name, str) or not given_name.isprintable() or not given_name.strip():
            raise AgentDeclarationError("hook", f"its name must be a text on one line, not {name!r:.80}")
        self.events: Final = checked_events(self.name, events)
        self.timeout: Final = checked_timeout(self.name, timeout)
        given: object = headers
        if not isinstance(given, Mapping | None):
            why = f"headers must be a mapping of texts, not {type(given).__name__}"
            raise AgentDeclarationError(f"hook {self.name!r}", why)
        self._url: Final = parsed
        self._headers: Final = {"content-type": "application/json", **(headers or {})}
        self._httpx: Final = httpx2

    async def ask(self, call: HookCall) -> HookAnswer:
        """Post the call.

        Raises:
            HookFailed: The status is another one, or the body is no answer.
            httpx2.HTTPError: The service cannot be reached.
        """
        # A client for each call: it belongs to no loop, and nothing of it is left open where an engine is closed.
        async with (
            self._httpx.AsyncClient(timeout=self.timeout, follow_redirects=False, trust_env=False) as client,
            client.stream("POST", self._url, content=msgspec.json.encode(call), headers=self._headers) as response,
        ):
            if response.status_code == HTTPStatus.NO_CONTENT:
                return HookAnswer()
            if response.status_code != HTTPStatus.OK:
                raise HookFailed(self.name, call.event, f"it answered with status {response.status_code}")
            body = await self._body(response, call)
        try:
            value = parse_json_strict(body.decode())
        except (UnicodeDecodeError, InvalidValue) as error:
            raise HookFailed(self.name, call.event, f"its answer is no JSON: {error}") from None
        return read_answer(self.name, call.event, value)

    async def _body(self, response: httpx2.Response, call: HookCall) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MOST:
                raise HookFailed(self.name, call.event, f"its answer has more than {MOST} bytes")
        return bytes(body)
