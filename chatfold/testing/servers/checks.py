"""What the checks of all protocols share: the refusal, and the pydantic base of the request shapes.

Owns no rule of any service. The shapes are strict and refuse unknown fields, as the services do.
"""

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

__all__ = ["STRING_BRANCHES", "RequestRefused", "Shape", "first_error"]


STRING_BRANCHES = frozenset({"str", "constrained-str"})
"""What pydantic adds to a place to say that the string branch of a union was meant."""


class RequestRefused(Exception):
    """A request breaks a rule; holds what the service would answer."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str | None = None,
        code: str | None = None,
        param: str | None = None,
    ) -> None:
        """Make a refusal.

        Args:
            message: The service's text.
            status: The HTTP status.
            type: The error's type; None takes the one that the service uses with this status.
            code: OpenAI's error code.
            param: OpenAI's name of the parameter.
        """
        super().__init__(message)
        self.message = message
        self.status = status
        self.type = type
        self.code = code
        self.param = param


class Shape(BaseModel):
    """A JSON object whose fields are all known and have exactly the type declared."""

    model_config = ConfigDict(extra="forbid", strict=True)


def first_error(error: ValidationError) -> ErrorDetails:
    """The error that a service would name.

    Where a string or a list may stand, pydantic reports both branches; that it is no string tells the least.
    """
    errors = error.errors()
    useful = (entry for entry in errors if entry["type"] != "string_type" or entry["loc"][-1] not in STRING_BRANCHES)
    return next(useful, errors[0])
