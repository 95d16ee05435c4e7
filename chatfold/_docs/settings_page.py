"""Makes ``docs/settings.md`` from ``chatfold.settings.Settings``; what a setting means is said there."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic.fields import FieldInfo

from chatfold.settings import Settings

_TYPES = {float: "number", int: "integer", str: "text", float | None: "number", int | None: "integer"}


def render() -> str:
    """Return the page."""
    fields = Settings.model_fields
    lines = [
        "# Settings",
        "",
        "Times are seconds. What the program gives comes first: `Engine(..., settings=Settings(lease=5))`; then the",
        "environment; then the TOML file that `CHATFOLD_CONFIG` names (it must be there), else `chatfold.toml` in the",
        "working directory, if there is one; then the default. A name that does not exist is refused, in the file and",
        "in the program; a wrong value anywhere: the error is an `InvalidValue`, whose `path` is the argument, the",
        "variable, or the file with the setting in it.",
        "",
        "An environment variable `CHATFOLD_...` that is no setting is not refused: an engine logs a warning,",
        "`setting_unknown`, with its name and the nearest one, and starts. An environment is shared: by other releases",
        "that know more settings or fewer, which run side by side while a deployment is rolled out, and by programs",
        "that begin their own variables alike. None of them may keep a service from starting. What Kubernetes sets for",
        "services named `chatfold` or `chatfold-...` is not warned of, nor is what chatfold's own tests read.",
        "",
        "| setting | in the environment | values | default | meaning |",
        "| --- | --- | --- | --- | --- |",
        *(_row(name, field) for name, field in fields.items()),
        "",
        "## The file of settings",
        "",
        "All settings with their defaults; those that have none are commented out.",
        "",
        "```toml",
        *(_toml(name, field) for name, field in fields.items()),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, field: FieldInfo) -> str:
    values = ", ".join([_TYPES.get(field.annotation, "text"), *_bounds(field)])  # type: ignore[arg-type]
    default = "none" if field.default is None else f"`{field.default}`"
    return f"| `{name}` | `CHATFOLD_{name.upper()}` | {values} | {default} | {field.description} |"


def _bounds(field: FieldInfo) -> Iterator[str]:
    for bound in field.metadata:
        if hasattr(bound, "ge"):
            yield f"at least {bound.ge}"
        elif hasattr(bound, "gt"):
            yield f"above {bound.gt}"
        elif hasattr(bound, "le"):
            yield f"at most {bound.le}"


def _toml(name: str, field: FieldInfo) -> str:
    if field.default is None:
        return f'# {name} = "..."'
    return f"{name} = {json.dumps(field.default)}"
