"""A loopback server: its thread, its connections, and the way of a request from arrival to the end of the answer.

Built on asyncio streams and h11, not on an ASGI server: a test that cuts a stream after the third chunk, stalls it, or
asks whether the client hung up needs the socket itself, and ASGI servers buffer, send keep-alives and close connections
as they see fit. h11 comes with both official SDKs, so a project that can call the server has it already; it is imported
when a server starts, since what a service refuses is checked without one too (`chatfold.testing.prompts`).

The server always runs in a thread with an event loop of its own, whether it is entered with `with` or `async with`: a
test that blocks its loop (a synchronous client, a debugger) still gets its answers, and worker processes can call it
while the test waits for them. Script functions run in that thread.

Owns no protocol: subclasses say how requests are checked and answers look.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import threading
from abc import ABC, abstractmethod
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, NoReturn, Self

from chatfold.testing.servers.checks import RequestRefused
from chatfold.testing.servers.fields import checked
from chatfold.testing.servers.matching import Script, ScriptError, as_function, check_reply
from chatfold.testing.servers.playing import ConnectionCut, play_body, play_frames
from chatfold.testing.servers.recording import Json, RecordedRequest, RefusedRequest, RequestLog
from chatfold.testing.servers.script import Answer, Fail, Reply, Search
from chatfold.testing.servers.signals import DEFAULT_WAIT
from chatfold.testing.servers.wire import Frame, Ids, Plan, dump

if TYPE_CHECKING:
    from chatfold.testing.servers.http_connection import HttpConnection, RawRequest

__all__ = ["LoopbackServer"]


class LoopbackServer(ABC):
    """A model service on 127.0.0.1 that answers from a script; use it with `with` or `async with`."""

    path: ClassVar[str]
    """The endpoint's path."""
    ping: ClassVar[Frame]
    """The protocol's keep-alive."""
    protocol: ClassVar[str]
    """The protocol's name."""
    search_tools: ClassVar[str | None] = None
    """What the types of the service's own search tool begin with; None: the service does not search."""
    pauses: ClassVar[bool] = False
    """Whether an answer may stop in the middle of its searches, and go on in the next one."""

    def __init__(self, script: Script, *, repeat_call_ids: bool = False) -> None:
        """Make a server that does not listen yet.

        Args:
            script: A list of replies, consumed in order of arrival, or a function from request to reply.
            repeat_call_ids: Whether the calls of each answer are named call_1, call_2, ... again, as some services do.

        Raises:
            TypeError: The script is neither, something in the list is no reply, or the other is neither true nor false.
        """
        self.refused: list[RefusedRequest] = []
        """Requests that broke a rule of the service, or had no reply in the script; a good test ends with none."""
        self.ids = Ids(checked(repeat_call_ids, bool, "repeat_call_ids"))
        self._log = RequestLog()
        self._script = as_function(script)
        self._port = 0
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._crashes: list[BaseException] = []

    # What a protocol says.

    @abstractmethod
    def check_headers(self, request: RecordedRequest) -> None:
        """Check the headers; raises RequestRefused as the service would refuse them."""

    @abstractmethod
    def check_body(self, request: RecordedRequest) -> None:
        """Check the body, and fill in the texts and results of the request; raises RequestRefused."""

    @abstractmethod
    def plan(self, request: RecordedRequest, answer: Answer) -> Plan:
        """Put an answer into the protocol's form; raises ScriptError where it has no form for it."""

    @abstractmethod
    def error_body(self, request: RecordedRequest, fail: Fail) -> Json:
        """The service's error JSON."""

    @abstractmethod
    def failure_frames(self, request: RecordedRequest, fail: Fail, plan: Plan, sent: int) -> list[Frame]:
        """How the service reports an error in the middle of a stream, after so many frames."""

    def response_headers(self, request: RecordedRequest) -> list[tuple[str, str]]:
        """Headers that each response of the service has."""
        return [("x-request-id", f"req_{request.index:024d}")]

    def completed(self, request: RecordedRequest, plan: Plan) -> None:  # noqa: B027 -- most protocols keep nothing
        """Called before the end of a whole answer is sent; keeps what the protocol keeps, by default nothing."""

    # What a test uses.

    @property
    def url(self) -> str:
        """Scheme, host and port.

        Raises:
            RuntimeError: The server does not run.
        """
        if self._thread is None:
            message = "the server does not run: enter it with `with` or `async with`"
            raise RuntimeError(message)
        return f"http://127.0.0.1:{self._port}"

    @property
    def base_url(self) -> str:
        """What the protocol's official SDK takes as its base URL."""
        return self.url

    @property
    def requests(self) -> list[RecordedRequest]:
        """All requests, refused ones too, in order of arrival."""
        return self._log.requests

    async def wait_for_requests(self, count: int, within: float = DEFAULT_WAIT) -> None:
        """Wait until so many requests have arrived.

        Args:
            count: The number of requests since the start.
            within: Seconds to wait at most.

        Raises:
            TimeoutError: They did not arrive in time.
        """
        await self._log.wait_for(count, within)

    def block_for_requests(self, count: int, within: float = DEFAULT_WAIT) -> None:
        """Do as `wait_for_requests`, for a thread without an event loop."""
        self._log.signal_for(count).block(within)

    def start(self) -> None:
        """Listen on a free port, in a thread.

        Raises:
            RuntimeError: The server runs already.
            ModuleNotFoundError: The SDK that it serves is not installed, nor what comes with it.
        """
        if find_spec("h11") is None:
            needs = "chatfold.testing.servers needs the SDK that it serves: pip install 'chatfold[anthropic,openai]'"
            raise ModuleNotFoundError(needs, name="h11")
        if self._thread is not None:
            message = "the server runs already"
            raise RuntimeError(message)
        ready = threading.Event()
        self._port = 0
        self._thread = threading.Thread(target=self._run, args=(ready,), name=type(self).__name__, daemon=True)
        self._thread.start()
        ready.wait()
        if self._port == 0:
            self.stop()

    def stop(self) -> None:
        """Close all connections, whatever they wait for, and end the thread.

        Raises:
            RuntimeError: The server itself failed while it ran; the failure is the cause.
        """
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._loop is not None and self._stopping is not None:
            # A loop that failed is closed already; its failure is raised below.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stopping.set)
        thread.join()
        if self._crashes:
            message = f"the {type(self).__name__} failed"
            raise RuntimeError(message) from self._crashes[0]

    def __enter__(self) -> Self:
        """Start the server."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.stop()

    async def __aenter__(self) -> Self:
        """Start the server."""
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop the server."""
        await asyncio.to_thread(self.stop)

    # The thread.

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._listen(ready))
        except BaseException as crash:  # noqa: BLE001 -- raised again by `stop`, in the thread of the test
            self._crashes.append(crash)
        finally:
            ready.set()

    async def _listen(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = listener.sockets[0].getsockname()[1]
        ready.set()
        await self._stopping.wait()
        listener.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from chatfold.testing.servers.http_connection import HttpConnection

        task = asyncio.ensure_future(self._converse(HttpConnection(reader, writer)))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _converse(self, connection: HttpConnection) -> None:
        from h11 import RemoteProtocolError

        try:
            while (raw := await connection.next_request()) is not None:
                if not await self._serve(connection, raw):
                    break
        except ConnectionCut as cut:
            if cut.how == "reset":
                with contextlib.suppress(ConnectionError):
                    await connection.reset()
        except (ConnectionError, RemoteProtocolError):
            # The client went away or does not speak HTTP: its connection is closed.
            return
        except Exception as crash:  # noqa: BLE001 -- raised again by `stop`, in the thread of the test
            self._crashes.append(crash)
        finally:
            await connection.close()

    async def _serve(self, connection: HttpConnection, raw: RawRequest) -> bool:
        """Answer one request; False once the client has hung up."""
        request = self._log.add(raw.method, raw.path, raw.headers, raw.body)
        answering = asyncio.ensure_future(self._answer(connection, request))
        listening = asyncio.ensure_future(connection.wait_for_hang_up())
        try:
            await asyncio.wait({answering, listening}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                return False
            answering.result()
            return True
        finally:
            for task in (answering, listening):
                task.cancel()
            await asyncio.gather(answering, listening, return_exceptions=True)
            lost = answering.done() and not answering.cancelled() and isinstance(answering.exception(), ConnectionError)
            gone = listening.done() and not listening.cancelled()
            if (gone or lost) and not request.sent:
                request.hung_up.set()
            request.ended.set()

    # One request.

    async def _answer(self, connection: HttpConnection, request: RecordedRequest) -> None:
        try:
            self._check(request)
        except RequestRefused as refusal:
            self._log.announce()
            await self._refuse(connection, request, refusal)
            return
        self._log.announce()
        try:
            reply = await self._reply(request)
            plan = self._plan(request, reply) if isinstance(reply, Answer) else None
        except ScriptError as error:
            await self._refuse(connection, request, RequestRefused(f"Script: {error}"))
            return
        if reply.delay:
            await asyncio.sleep(reply.delay)
        if reply.gate is not None and not (isinstance(reply, Answer) and reply.gate_after is not None):
            await reply.gate.pass_through()
        match reply:
            case Answer() if plan is not None:
                await self._send_answer(connection, request, reply, plan)
            case Fail():
                await self._send_failure(connection, request, reply)
            case _:
                raise ConnectionCut(reply.cut)

    def _check(self, request: RecordedRequest) -> None:
        if request.path != self.path:
            message = f"Invalid URL ({request.method} {request.path})"
            raise RequestRefused(message, status=404, type="not_found_error")
        if request.method != "POST":
            message = f"Not allowed to {request.method} on {request.path}."
            raise RequestRefused(message, status=405)
        self.check_headers(request)
        request.body = _parse(request.raw)
        self.check_body(request)

    async def _reply(self, request: RecordedRequest) -> Reply:
        try:
            given = self._script(request)
            reply = await given if inspect.isawaitable(given) else given
        except ScriptError:
            raise
        except Exception as error:
            message = f"the script's function raised {error!r}"
            raise ScriptError(message) from error
        try:
            return check_reply(reply, "what the script's function returns")
        except TypeError as error:
            raise ScriptError(str(error)) from error

    def _plan(self, request: RecordedRequest, answer: Answer) -> Plan:
        searches = [part for part in answer.part_list if isinstance(part, Search)]
        problem = None
        if searches and self.search_tools is None:
            problem = f"{self.protocol} has no searches"
        elif searches and not _has_tool(request.body, self.search_tools or ""):
            problem = "the script searches, and the request has no web_search tool"
        elif not self.pauses and answer.effective_stop == "pause":
            problem = f"{self.protocol} has no answers that pause"
        elif not self.pauses and any(search.unfinished for search in searches):
            problem = f"{self.protocol} has no searches that go on in the next answer"
        if problem is not None:
            raise ScriptError(problem)
        return self.plan(request, answer)

    async def _send_answer(
        self, connection: HttpConnection, request: RecordedRequest, answer: Answer, plan: Plan
    ) -> None:
        common = self.response_headers(request)
        complete = partial(self.completed, request, plan)
        if request.stream:
            kind = "text/event-stream; charset=utf-8"
            await connection.start(200, [("content-type", kind), ("cache-control", "no-cache"), *common])
            fail = answer.fail
            failure = None if fail is None else lambda sent: self.failure_frames(request, fail, plan, sent)
            try:
                await play_frames(
                    answer, plan.frames, connection.send, ping=self.ping, failure=failure, complete=complete
                )
            except ConnectionCut as cut:
                if cut.how != "end":
                    raise
                # To the client the answer is whole, so it may send the next request over this connection.
                await connection.finish()
                return
        else:
            body = dump(plan.body)
            length = ("content-length", str(len(body)))
            if answer.fail is not None:
                await self._send_failure(connection, request, answer.fail)
                return
            await connection.start(200, [("content-type", "application/json"), length, *common])
            await play_body(answer, body, connection.send, complete)
        request.sent = True
        await connection.finish()

    async def _send_failure(self, connection: HttpConnection, request: RecordedRequest, fail: Fail) -> None:
        if fail.body is None:
            body, kind = dump(self.error_body(request, fail)), "application/json"
        else:
            body, kind = fail.body.encode("utf-8"), "text/html; charset=utf-8"
        given = {name.lower(): value for name, value in fail.headers.items()}
        defaults = [("content-type", kind), *self.response_headers(request)]
        headers = [(name, value) for name, value in defaults if name not in given]
        await connection.start(fail.status, [*headers, ("content-length", str(len(body))), *given.items()])
        await connection.send(body)
        request.sent = True
        await connection.finish()

    async def _refuse(self, connection: HttpConnection, request: RecordedRequest, refusal: RequestRefused) -> None:
        self.refused.append(RefusedRequest(request, refusal.status, refusal.message))
        fail = Fail(refusal.status, refusal.message, type=refusal.type, code=refusal.code, param=refusal.param)
        await self._send_failure(connection, request, fail)


def _has_tool(body: Json, kind: str) -> bool:
    return any(str(tool.get("type", "")).startswith(kind) for tool in body.get("tools") or [])


def _parse(raw: bytes) -> Json:
    """Parse a body as strictly as the services do.

    Raises:
        RequestRefused: It is no JSON object, or holds NaN, infinity or half a surrogate pair.
    """

    def no_constant(name: str) -> NoReturn:
        raise ValueError(name)

    try:
        body = json.loads(raw, parse_constant=no_constant)
        json.dumps(body, ensure_ascii=False).encode("utf-8")
    except ValueError as error:
        message = f"The request body is not valid JSON: {error}"
        raise RequestRefused(message) from error
    if not isinstance(body, dict):
        message = "The request body must be a JSON object."
        raise RequestRefused(message)
    return body
