"""What the model sees of a tool's arguments, and the validator behind it, from a typed function or from a type.

Owns the reading of signatures, annotations and docstrings. What a tool is beside its arguments is
``generation.tools.contract``'s.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NotRequired

import msgspec
from docstring_parser import DocstringStyle, ParseError, parse
from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from events.content import Json
from events.errors import InvalidValue
from events.values import check_value
from generation.errors import ToolDeclarationError
from generation.tools.schema_check import problems

_Kind = inspect.Parameter
_UNBOUND: Final = ": where it is a method, make the tool of an object's, as in tool(service.search)"
_FIT_TYPES: Final = "use JSON types, a pydantic model, a dataclass or a TypedDict"

_UNNAMED: Final = {
    _Kind.VAR_POSITIONAL: "takes *{}: each argument needs a name",
    _Kind.VAR_KEYWORD: "takes **{}: each argument needs a name",
    _Kind.POSITIONAL_ONLY: "takes {} by position only: arguments are passed by name",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function says of itself.

    Attributes:
        description: The docstring without its sections.
        schema: JSON schema of the arguments.
        arguments: Validates the JSON text of an object into the function's arguments by name; a default is left to the
            function.
        context: Name of the parameter that takes the context; None if none does.
    """

    description: str
    schema: dict[str, Json]
    arguments: TypeAdapter[dict[str, Any]]
    context: str | None


class _Untitled(GenerateJsonSchema):
    """Pydantic's schema without titles of fields: they say their name again and cost tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        del schema
        return False


def read_signature(name: str, function: Callable[..., object], context_type: type) -> Signature:
    """Derive what the model sees of a function, and the validator of its arguments.

    Args:
        name: The tool's name, for errors.
        function: A function, method or callable object whose parameters are annotated. Arguments have their names, or
            their alias where ``Annotated[..., Field(alias=...)]`` gives one.
        context_type: A parameter with this annotation takes the context and is no argument.

    Raises:
        ToolDeclarationError: A parameter cannot be an argument, or its type has no JSON schema.
    """
    signature, hints = _hints(name, function)
    description, described = _docstring(name, function)
    context: str | None = None
    fields: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind in _UNNAMED:
            raise ToolDeclarationError(name, _UNNAMED[parameter.kind].format(parameter.name))
        if parameter.name not in hints:
            bound = _UNBOUND if parameter.name == "self" else ""
            raise ToolDeclarationError(name, f"parameter {parameter.name} has no annotation{bound}")
        if hints[parameter.name] is context_type:
            if context is not None:
                raise ToolDeclarationError(name, f"parameters {context} and {parameter.name} both take the context")
            context = parameter.name
            continue
        fields[parameter.name] = _field(name, parameter, hints[parameter.name], described.get(parameter.name))
    unknown = sorted(set(described) - set(signature.parameters))
    if unknown:
        raise ToolDeclarationError(name, f"the docstring describes arguments that do not exist: {', '.join(unknown)}")
    make: Any = TypedDict  # the type checker knows literal fields alone
    form = make(name, fields)
    form.__pydantic_config__ = ConfigDict(extra="forbid")
    adapter: TypeAdapter[dict[str, Any]] = adapter_of(name, form)
    return Signature(description, _schema_of(name, adapter), adapter, context)


def schema_of_type(name: str, form: Any) -> dict[str, Json]:
    """Return the JSON schema of a type whose values are objects (a pydantic model, a TypedDict, a dataclass).

    Raises:
        ToolDeclarationError: It has none, or its values are no objects.
    """
    schema = _schema_of(name, adapter_of(name, form))
    schema.setdefault("additionalProperties", False)
    return schema


def check_schema(name: str, schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return a copy of a given JSON schema in the form that every provider takes.

    An empty or absent ``required`` is left out (some refuse it), ``properties`` is always there.

    Raises:
        ToolDeclarationError: It is not plain JSON, or not the schema of an object.
    """
    given: object = schema
    if not isinstance(given, Mapping):
        raise ToolDeclarationError(name, f"a schema is a mapping or a type that has one, not {type(given).__name__}")
    try:
        check_value(dict(schema), "schema")
    except InvalidValue as error:
        raise ToolDeclarationError(name, str(error)) from None
    copy: dict[str, Json] = msgspec.json.decode(msgspec.json.encode(schema))
    if copy.get("type") != "object":
        raise ToolDeclarationError(name, 'the schema of the arguments must have "type": "object"')
    problem = next(problems(copy, "schema"), None)
    if problem is not None:
        raise ToolDeclarationError(name, problem)
    if not copy.get("required"):
        copy.pop("required", None)
    copy.setdefault("properties", {})
    return copy


def _hints(name: str, function: Callable[..., object]) -> tuple[inspect.Signature, dict[str, Any]]:
    unwrapped = inspect.unwrap(function)
    while hasattr(unwrapped, "func"):  # functools.partial
        unwrapped = unwrapped.func
    source = unwrapped if inspect.isroutine(unwrapped) else type(unwrapped).__call__
    try:
        return inspect.signature(function), typing.get_type_hints(source, include_extras=True)
    except NameError as error:
        raise ToolDeclarationError(name, f"an annotation names what the module does not define: {error}") from None
    except (TypeError, ValueError) as error:
        raise ToolDeclarationError(name, f"its signature cannot be read: {error}") from None


def _docstring(name: str, function: Callable[..., object]) -> tuple[str, dict[str, str]]:
    text = inspect.getdoc(function if inspect.isroutine(function) else getattr(function, "func", type(function)))
    try:
        parsed = parse(text or "", DocstringStyle.GOOGLE)
    except ParseError as error:
        raise ToolDeclarationError(name, f"its docstring cannot be read: {error}") from None
    described = {p.arg_name.lstrip("*"): _one_line(p.description) for p in parsed.params if p.args[0] == "param"}
    return (parsed.description or "").strip(), {argument: text for argument, text in described.items() if text}


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _field(name: str, parameter: inspect.Parameter, hint: Any, description: str | None) -> Any:
    extra: dict[str, Any] = {}
    if isinstance(parameter.default, FieldInfo):
        raise ToolDeclarationError(
            name, f"parameter {parameter.name}: write Annotated[..., Field(...)] and a plain default"
        )
    if parameter.default is not _Kind.empty:
        try:
            default = to_jsonable_python(parameter.default)
            check_value(default)
            extra["json_schema_extra"] = {"default": default}
        except (InvalidValue, ValueError):
            pass  # the default is the function's; the model is told only that the argument may be left out
    if description is not None and not _described(hint):
        extra["description"] = description
    annotated = Annotated[hint, Field(**extra)] if extra else hint
    return annotated if parameter.default is _Kind.empty else NotRequired[annotated]


def _described(hint: Any) -> bool:
    marks = getattr(hint, "__metadata__", ())
    return any(isinstance(mark, FieldInfo) and mark.description is not None for mark in marks)


def adapter_of(name: str, form: Any) -> TypeAdapter[Any]:
    """Return what validates values of a type.

    Raises:
        ToolDeclarationError: The type cannot be validated.
    """
    try:
        return TypeAdapter(form)
    except PydanticSchemaGenerationError as error:
        # Its advice is for a model's own settings, which the annotation of a function has not.
        what = _first_line(error).partition(". ")[0]
        raise ToolDeclarationError(name, f"{what}: {_FIT_TYPES}") from error
    except PydanticUserError as error:
        raise ToolDeclarationError(name, _first_line(error)) from error


def _schema_of(name: str, adapter: TypeAdapter[Any]) -> dict[str, Json]:
    try:
        schema = adapter.json_schema(schema_generator=_Untitled)
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        raise ToolDeclarationError(name, _first_line(error)) from error
    if schema.get("$ref", "").startswith("#/$defs/"):  # a model that refers to itself
        schema = {**schema["$defs"][schema.pop("$ref").removeprefix("#/$defs/")], **schema}
    schema.pop("title", None)
    schema.pop("description", None)
    return check_schema(name, schema)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
