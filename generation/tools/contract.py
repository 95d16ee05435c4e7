"""What a tool is: its declaration, what its function may ask for, and what it may answer.

Owns the public forms in which applications declare tools. Schemas and validators come from ``generation.tools.schema``;
running a call is ``generation.tools.execute``'s.
"""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias, get_args, overload

from pydantic import TypeAdapter

from events.content import Json
from events.ids import CallKey, ChatId, WorkerId
from events.parts import CrashPolicy, OnExpiry
from generation.digest import digest_of
from generation.errors import ToolDeclarationError
from generation.prompt_types import ToolSpec
from generation.tools.files import ToolFile
from generation.tools.schema import adapter_of, check_schema, read_signature, schema_of_type

ToolRunner: TypeAlias = Literal["local", "client"]
"""Who runs a declared tool: a worker, or the client. (What a provider runs by itself is not declared as a tool.)"""

ToolFunction: TypeAlias = Callable[..., object]
"""A typed function, sync or async. A sync one runs in a thread of its own."""

ReconcileFunction: TypeAlias = Callable[["ToolContext", dict[str, Any]], object]
"""Tells what became of a call whose worker died: gets its context and its arguments by name, sync or async.

It answers ``Happened(output)``, ``NOT_HAPPENED`` (the call runs then) or ``NOT_KNOWN``; where it raises, or does not
answer within the tool's timeout, the outcome is not known. It may be asked more than once about one call, and by then
the function of the dead worker may be running still: ``NOT_HAPPENED`` is right only where that one can do nothing more.
"""

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}", re.ASCII)


LONGEST: Final = 100 * 366 * 86_400
"""Seconds that a time may last at most, a hundred years: what comes after it must fit into an event."""


def duration_problem(seconds: object) -> str | None:
    """Return what is wrong with a time that is declared, to follow its name; None where it is one that ends."""
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds <= LONGEST:
        return None
    return f"must be positive seconds, at most a hundred years, not {seconds!r}"


class CallCancelled(Exception):
    """Raised by ``ToolContext.check_cancelled`` in a call that shall end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool function may know of its call: it gets one for a parameter that is annotated ``ToolContext``.

    Attributes:
        chat: The chat.
        call: The call, unique within its chat and the same when the call is run again after a crash.
        epoch: Raised whenever the chat changes hands: a fencing token. A system that remembers the highest epoch of a
            chat can refuse a worker that lost the chat and does not know it yet.
        worker: The worker that runs the call.
        attempt: The attempt of the chat that the call belongs to.
    """

    chat: ChatId
    call: CallKey
    epoch: int
    worker: WorkerId
    attempt: int
    _cancelled: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def idempotency_key(self) -> str:
        """The call by a text that no other call of any chat has: for systems that do the same thing once only."""
        return f"{self.chat}/{self.call}"

    @property
    def cancelled(self) -> bool:
        """Whether the call shall end: a sync function cannot be stopped from outside and looks here now and then."""
        return self._cancelled.is_set()

    def check_cancelled(self) -> None:
        """Go on if the call may.

        Raises:
            CallCancelled: It shall end.
        """
        if self._cancelled.is_set():
            raise CallCancelled("the call was cancelled")

    def wait_cancelled(self, timeout: float | None = None) -> bool:
        """Block a sync function's thread until the call shall end, at most ``timeout`` s; return whether it shall."""
        return self._cancelled.wait(timeout)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """An answer that says itself whether it is an error, or that comes with files.

    Attributes:
        output: Text, or anything that has a JSON form.
        is_error: Whether the call failed.
        media: Files that the model is shown with the result: images, PDFs, texts. A service that does not take one gets
            words in its place. (A function may also return a ``ToolFile`` alone.)
        attachments: Files for people alone: they stand with the result in the transcript, and in no prompt.
    """

    output: Any = ""
    is_error: bool = False
    media: Sequence[ToolFile] = ()
    attachments: Sequence[ToolFile] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that an agent offers to its model.

    Attributes:
        name: 1 to 64 letters, digits, ``_`` or ``-``.
        description: What the model reads of it.
        schema: JSON schema of the arguments, of an object.
        runner: ``local``: ``function`` runs in the worker. ``client``: the chat waits for the client's result.
        crash: What to do with a call whose worker died while it ran: ``rerun`` it (only where running twice does no
            harm), or ``report`` to the model that the outcome is unknown.
        reconcile: Asked before such a call of a ``report`` tool is reported: did it happen? See ``ReconcileFunction``.
        exclusive: It must be the only call of its step; otherwise none of them runs.
        stop_after: Its result, unless it is an error, ends the turn.
        needs_approval: The client must approve each call before it runs here.
        timeout: Seconds that a call may run; None for no limit.
        action_timeout: Seconds that the client has for its result, or its approval; None for the agent's
            (``Limits.action_timeout``).
        on_expiry: What follows when it does not answer: the model goes on, or the turn ends; None for the agent's.
        function: What runs; None for a client's tool.
        arguments: Validates a call's arguments; None where the schema was given as JSON.
        context: Name of the function's parameter that takes the ``ToolContext``.
    """

    name: str
    description: str
    schema: dict[str, Json] = field(hash=False)
    runner: ToolRunner = "local"
    crash: CrashPolicy = "report"
    reconcile: ReconcileFunction | None = None
    exclusive: bool = False
    stop_after: bool = False
    needs_approval: bool = False
    timeout: float | None = None
    action_timeout: float | None = None
    on_expiry: OnExpiry | None = None
    function: ToolFunction | None = None
    arguments: TypeAdapter[Any] | None = field(default=None, repr=False, compare=False)
    context: str | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ToolDeclarationError(str(self.name), "a name is 1 to 64 letters, digits, _ or -")
        if self.runner not in get_args(ToolRunner):
            raise ToolDeclarationError(self.name, f"runner is local or client, not {self.runner!r}")
        if self.crash not in get_args(CrashPolicy):
            raise ToolDeclarationError(self.name, f"crash is rerun or report, not {self.crash!r}")
        if self.reconcile is not None:
            self._check_reconcile(self.reconcile)
        if (self.function is None) is (self.runner == "local"):
            raise ToolDeclarationError(self.name, "a local tool has a function, a client's has none")
        if not isinstance(self.description, str):
            raise ToolDeclarationError(self.name, f"the description is a text, not {type(self.description).__name__}")
        for given in ("exclusive", "stop_after", "needs_approval"):
            if not isinstance(flag := getattr(self, given), bool):
                raise ToolDeclarationError(self.name, f"{given} must be True or False, not {type(flag).__name__}")
        for given in ("timeout", "action_timeout"):
            seconds = getattr(self, given)
            if seconds is not None and (problem := duration_problem(seconds)) is not None:
                raise ToolDeclarationError(self.name, f"{given} {problem}")
        if self.on_expiry is not None and self.on_expiry not in get_args(OnExpiry):
            raise ToolDeclarationError(self.name, f"on_expiry is go_on or end_turn, not {self.on_expiry!r}")
        self._check_client()
        object.__setattr__(self, "schema", check_schema(self.name, self.schema))

    def _check_client(self) -> None:
        """Refuse what would have no effect: an approval where nothing runs here, a deadline where nobody is asked."""
        if self.runner == "client":
            if self.needs_approval:
                why = "the client runs this tool and can ask by itself: needs_approval is for tools that run here"
                raise ToolDeclarationError(self.name, why)
            if self.timeout is not None:
                raise ToolDeclarationError(self.name, "the client runs this tool: its time is the action_timeout")
        elif not self.needs_approval and (self.action_timeout is not None or self.on_expiry is not None):
            raise ToolDeclarationError(
                self.name, "nothing is asked of the client: action_timeout and on_expiry are for needs_approval=True"
            )

    def _check_reconcile(self, reconcile: object) -> None:
        if not callable(reconcile):
            raise ToolDeclarationError(self.name, f"reconcile is a function, not {type(reconcile).__name__}")
        if self.runner == "client":
            raise ToolDeclarationError(self.name, "the client runs this tool: there is no crash to reconcile")
        if self.crash == "rerun":
            raise ToolDeclarationError(
                self.name, "a rerun tool is run again in any case: reconcile is for crash=report"
            )
        try:
            inspect.signature(reconcile).bind(None, {})
        except TypeError as error:
            raise ToolDeclarationError(self.name, f"reconcile takes the context and the arguments: {error}") from None
        except ValueError:
            return  # something built in, whose parameters cannot be read

    @classmethod
    def from_function(
        cls,
        function: ToolFunction,
        *,
        name: str | None = None,
        description: str | None = None,
        crash: CrashPolicy = "report",
        reconcile: ReconcileFunction | None = None,
        exclusive: bool = False,
        stop_after: bool = False,
        needs_approval: bool = False,
        timeout: float | None = None,
        action_timeout: float | None = None,
        on_expiry: OnExpiry | None = None,
    ) -> Tool:
        """Declare a typed function as a tool.

        Args:
            function: Sync or async. Its parameters are annotated; their types give the schema and validate the
                arguments. Its docstring is the description; a Google-style ``Args:`` section describes the arguments.
            name: The function's own by default.
            description: In place of the docstring.
            crash: See ``Tool``.
            reconcile: See ``Tool``.
            exclusive: See ``Tool``.
            stop_after: See ``Tool``.
            needs_approval: See ``Tool``.
            timeout: Seconds; see ``Tool``.
            action_timeout: Seconds; see ``Tool``.
            on_expiry: See ``Tool``.

        Raises:
            ToolDeclarationError: The function cannot be a tool: a parameter without annotation or without a name of its
                own, a type without JSON schema, a generator, a bad name.
        """
        if not callable(function):
            raise ToolDeclarationError(name or repr(function), "is not callable")
        own = name if name is not None else getattr(function, "__name__", "")
        if not isinstance(own, str) or not own:
            raise ToolDeclarationError(
                repr(function), "has no name: give one, a name is 1 to 64 letters, digits, _ or -"
            )
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ToolDeclarationError(own, "is a generator: a tool returns its answer whole")
        signature = read_signature(own, function, ToolContext)
        return cls(
            name=own,
            description=signature.description if description is None else description,
            schema=signature.schema,
            crash=crash,
            reconcile=reconcile,
            exclusive=exclusive,
            stop_after=stop_after,
            needs_approval=needs_approval,
            timeout=timeout,
            action_timeout=action_timeout,
            on_expiry=on_expiry,
            function=function,
            arguments=signature.arguments,
            context=signature.context,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function as it was written.

        Raises:
            TypeError: The client runs this tool.
        """
        if self.function is None:
            raise TypeError(f"tool {self.name!r} is run by the client")
        return self.function(*args, **kwargs)

    @property
    def spec(self) -> ToolSpec:
        """The tool as the model sees it."""
        return ToolSpec(name=self.name, description=self.description, schema=self.schema)

    @property
    def digest(self) -> str:
        """Digest of what the model sees of it."""
        return digest_of(self.spec)


@overload
def tool(function: ToolFunction, /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    crash: CrashPolicy = "report",
    reconcile: ReconcileFunction | None = None,
    exclusive: bool = False,
    stop_after: bool = False,
    needs_approval: bool = False,
    timeout: float | None = None,
    action_timeout: float | None = None,
    on_expiry: OnExpiry | None = None,
) -> Callable[[ToolFunction], Tool]: ...


def tool(function: ToolFunction | None = None, /, **options: Any) -> Tool | Callable[[ToolFunction], Tool]:
    """Make a typed function a tool: ``@tool``, or ``@tool(timeout=30)`` with the options of ``Tool.from_function``.

    Raises:
        ToolDeclarationError: The function cannot be a tool.
    """
    if function is not None:
        return Tool.from_function(function)
    return lambda wrapped: Tool.from_function(wrapped, **options)


def client_tool(
    name: str,
    description: str,
    schema: Mapping[str, Json] | type,
    *,
    exclusive: bool = False,
    stop_after: bool = False,
    action_timeout: float | None = None,
    on_expiry: OnExpiry | None = None,
) -> Tool:
    """Declare a tool that the client runs: the chat waits for its result in ``requires_action``.

    Args:
        name: See ``Tool``.
        description: What the model reads of it.
        schema: The arguments: a JSON schema of an object, or a type that has one (pydantic model, TypedDict,
            dataclass). The client is asked only for arguments that are an object, and by a type only for its values.
        exclusive: See ``Tool``.
        stop_after: See ``Tool``.
        action_timeout: Seconds that the client has; see ``Tool``.
        on_expiry: What follows after them; see ``Tool``.

    Raises:
        ToolDeclarationError: A bad name, or a schema that is not one of an object.
    """
    return Tool(
        name=name,
        description=description,
        schema=schema_of_type(name, schema) if isinstance(schema, type) else check_schema(name, schema),
        arguments=adapter_of(name, schema) if isinstance(schema, type) else None,
        runner="client",
        exclusive=exclusive,
        stop_after=stop_after,
        action_timeout=action_timeout,
        on_expiry=on_expiry,
    )
