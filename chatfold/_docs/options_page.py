"""Makes ``docs/model-options.md`` from the table of options of models."""

from __future__ import annotations

from generation.providers.options import OPTIONS, RESERVED

_PROTOCOLS = {"anthropic": "Messages", "openai": "Responses", "openai-chat": "Chat Completions"}


def render() -> str:
    """Return the page."""
    lines = [
        "# Options of models",
        "",
        "What `ModelConfig(options={...})` takes, see [models](models.md). An option that the protocol of the provider",
        "does not take, and a value that it has not, are refused when the model is declared.",
        "",
        f"| option | values | {' | '.join(f'{name} (`{short}`)' for short, name in _PROTOCOLS.items())} |",
        "| --- | --- | --- | --- | --- |",
        *(_row(name) for name in OPTIONS),
        "",
        "## What extra does not take",
        "",
        "`ModelConfig(extra={...})` is put into the request as it is. It must not name an option, nor one of these:",
        "",
        *(f"- {_PROTOCOLS[short]}: {', '.join(f'`{name}`' for name in names)}" for short, names in RESERVED.items()),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str) -> str:
    option = OPTIONS[name]
    taken = ["yes" if option.writer(short) is not None else "" for short in _PROTOCOLS]
    return f"| `{name}` | {option.kind.words} | {' | '.join(taken)} |"
