"""Errors of the ``generation`` layer, under one base, and the classified form of a provider's error. Pure."""

from __future__ import annotations

from types import NoneType
from typing import Final, Literal, TypeAlias, cast, get_args

from msgspec import Struct
from msgspec.structs import force_setattr

from events.errors import InvalidValue
from generation.error_texts import fit_detail, fit_message, hook_message


class GenerationError(Exception):
    """Base of all errors of this layer."""


class ToolDeclarationError(GenerationError, ValueError):
    """A tool cannot be declared so: says the tool and why."""

    def __init__(self, tool: str, why: str) -> None:
        super().__init__(f"tool {tool!r}: {why}")
        self.tool = tool
        self.why = why


class AgentDeclarationError(GenerationError, ValueError):
    """An agent, or a model configuration of one, cannot be declared so: says whose and why."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what}: {why}")
        self.what = what
        self.why = why


class OptionRefused(GenerationError, ValueError):
    """A model's transport does not take an option, or not with this value: says which and why."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class EpisodeExists(GenerationError):
    """A part buffer was asked to create an episode that it has."""


class SubscriberTooSlow(GenerationError):
    """A subscriber of live parts did not take them in time and was dropped; committed events tell what it missed."""


class CursorInvalid(GenerationError, ValueError):
    """A text is no stream position that this release wrote: says why."""

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"not a stream position: {why}")
        self.text = text
        self.why = why


ErrorKind: TypeAlias = Literal[
    "generic",
    "overloaded",
    "rate_limit",
    "timeout",
    "stream_silence_timeout",
    "auth",
    "config",
    "usage_limit",
    "missing_key",
    "provider_disabled",
    "content_filter",
    "hook_dispatch_failed",
    "hook_denied",
]
"""What failed model calls are told apart by, and what hooks stopped."""

_KINDS: Final = get_args(ErrorKind)

RECORDED_KINDS: Final[tuple[str, ...]] = (*_KINDS, "worker_lost", "reconciled")
"""All kinds of errors that logs have: beside those by which calls and hooks end, what the engine says of a turn."""


_FIELDS: Final[tuple[tuple[str, tuple[type, ...], str], ...]] = (
    ("message", (str,), "a text"),
    ("detail", (str, NoneType), "a text or None"),
    ("provider", (str, NoneType), "a name or None"),
    ("retryable", (bool,), "true or false"),
    ("status_code", (int, NoneType), "a number or None"),
    ("retry_after_us", (int, NoneType), "microseconds, a whole number, or None"),
    ("chain_broken", (bool,), "true or false"),
    ("too_large", (bool,), "true or false"),
)
"""What fields of an error beside its kind must be, and how that is called."""


class ClassifiedError(Struct, frozen=True, kw_only=True):
    """What a failed model call means for the turn.

    ``retry_after_us`` is what the provider asked to wait, in microseconds. ``chain_broken``: it no longer has what the
    request builds on. ``too_large``: it said by a code of its own that the prompt is over the model's context.

    Whoever made it, its texts are fit to be stored and streamed: lone surrogates repaired, secrets gone, each cut to
    its length.

    Raises:
        InvalidValue: The kind is none of :data:`ErrorKind`, or a field has what it cannot have; the path says which.
    """

    kind: ErrorKind
    message: str
    detail: str | None = None
    provider: str | None = None
    retryable: bool = False
    status_code: int | None = None
    retry_after_us: int | None = None
    chain_broken: bool = False
    too_large: bool = False

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InvalidValue("$.kind", f"must be one of {', '.join(_KINDS)}, not {self.kind!r:.80}")
        for name, kinds, wanted in _FIELDS:
            if not isinstance(given := getattr(self, name), kinds):
                raise InvalidValue(f"$.{name}", f"must be {wanted}, not {type(given).__name__}")
        force_setattr(self, "message", fit_message(self.message))
        if self.detail is not None:
            force_setattr(self, "detail", fit_detail(self.detail))


INTERNAL: Final = ClassifiedError(kind="generic", message="The call failed by an internal error.")
"""What observers are told of a call that ended by what no provider raised."""


class ProviderError(GenerationError):
    """A model call failed; ``error`` is its classified form."""

    def __init__(self, error: ClassifiedError) -> None:
        if not isinstance(cast("object", error), ClassifiedError):
            raise InvalidValue("$.error", f"must be a ClassifiedError, not {type(error).__name__}")
        super().__init__(f"{error.kind}: {error.message}")
        self.error = error


class HookFailed(GenerationError):
    """A hook could not be asked, or gave no answer that is allowed: what it was asked about was not done.

    What it says is fit to be logged and shown: redacted and cut as the detail of a turn's error is.

    Attributes:
        hook: Its name.
        event: What it was asked at.
        why: What went wrong.
    """

    kind: ErrorKind = "hook_dispatch_failed"

    def __init__(self, hook: str, event: str, why: str) -> None:
        super().__init__(fit_detail(f"hook {hook} at {event}: {why}"))
        self.hook = fit_message(hook)
        self.event = event
        self.why = fit_detail(why)

    def classified(self, *, on_request: bool = False) -> ClassifiedError:
        """Return what it means for a turn: it ends, and nothing is tried again.

        Args:
            on_request: Whether it was asked about a compaction that a user wanted.
        """
        message = hook_message(self.event, on_request=on_request)
        return ClassifiedError(kind=self.kind, message=message, detail=str(self))


class HookDenied(GenerationError):
    """A hook denied a command; nothing was done.

    Attributes:
        event: What it was asked at.
        reason: Why, in the hook's words, without secrets and cut as messages are.
    """

    kind: ErrorKind = "hook_denied"

    def __init__(self, event: str, reason: str) -> None:
        self.event = event
        self.reason = fit_message(reason)
        super().__init__(f"denied by a hook at {event}: {self.reason}")


class UnknownModel(GenerationError, ValueError):
    """A model reference names no provider that is known or configured."""

    def __init__(self, reference: str, why: str) -> None:
        super().__init__(f"model {reference!r}: {why}")
        self.reference = reference
        self.why = why


class InvalidBaseUrl(GenerationError, ValueError):
    """Where a provider shall reach its service is no URL of one: says whose setting it is and why.

    Attributes:
        whose: The setting or environment variable.
        why: What is wrong.
    """

    def __init__(self, whose: str, shown: str, why: str) -> None:
        super().__init__(f"{whose}: {f'{shown}: ' if shown else ''}{why}")
        self.whose = whose
        self.why = why


class MissingExtra(GenerationError, ImportError):
    """A provider's SDK is not installed; the message says how to install it."""

    def __init__(self, provider: str, extra: str) -> None:
        super().__init__(f"provider {provider!r} needs its SDK: pip install 'chatfold[{extra}]'")
        self.provider = provider
        self.extra = extra


class UnknownAgent(GenerationError, ValueError):
    """A chat names an agent that is not declared here."""

    def __init__(self, agent: str, declared: tuple[str, ...]) -> None:
        known = f"declared here: {', '.join(declared)}" if declared else "this engine was made without agents"
        super().__init__(f"there is no agent {agent!r}; {known}")
        self.agent = agent
        self.declared = declared


class TitleNotProposed(GenerationError):
    """No model gave a title that can be used; ``error`` says how the last one failed.

    What the calls took and cost is in the chat's log all the same.
    """

    def __init__(self, error: ClassifiedError) -> None:
        super().__init__(f"{error.kind}: {error.message}")
        self.error = error
