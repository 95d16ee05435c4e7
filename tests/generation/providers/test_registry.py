"""Model references: what they name, what is wrong with them, and what is imported when."""

from __future__ import annotations

import subprocess
import sys

import pytest

from generation.errors import MissingExtra, UnknownModel
from generation.models import split_reference
from generation.providers.anthropic import AnthropicProvider
from generation.providers.openai_chat import OpenAIChatProvider
from generation.providers.openai_responses import OpenAIResponsesProvider
from generation.providers.registry import ProviderSettings, make_provider, provider_for
from generation.providers.scripted import ScriptedProvider


@pytest.mark.parametrize(
    ("reference", "kind", "model"),
    [
        ("anthropic/claude-x", AnthropicProvider, "claude-x"),
        ("openai/gpt-x", OpenAIResponsesProvider, "gpt-x"),
        ("openai-chat/vendor/model:free", OpenAIChatProvider, "vendor/model:free"),
        ("scripted", ScriptedProvider, "friendly"),
        ("scripted/friendly", ScriptedProvider, "friendly"),
        (" scripted ", ScriptedProvider, "friendly"),
    ],
)
def test_references(reference: str, kind: type, model: str) -> None:
    provider, name = provider_for(reference, base_url="http://127.0.0.1:1", api_key="k")
    assert isinstance(provider, kind)
    assert name == model
    assert provider.name == split_reference(reference)[0]


@pytest.mark.parametrize("reference", ["", "claude-x", "anthropic", "anthropic/", "/x", "google/x", "Anthropic/x"])
def test_what_is_no_reference_is_told_the_valid_forms(reference: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        provider_for(reference)
    assert "anthropic/NAME, openai/NAME, openai-chat/NAME, scripted" in str(caught.value)
    assert caught.value.reference == reference


def test_a_provider_that_is_not_known() -> None:
    with pytest.raises(UnknownModel, match="nobody"):
        make_provider("nobody", ProviderSettings())


@pytest.mark.parametrize(("name", "sdk"), [("anthropic", "anthropic"), ("openai", "openai"), ("openai-chat", "openai")])
def test_a_missing_sdk_is_named_with_its_extra(name: str, sdk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [module for module in sys.modules if module == sdk or module.startswith(f"{sdk}.")]:
        monkeypatch.delitem(sys.modules, module)
    for module in [
        module
        for module in sys.modules
        if module.startswith(("generation.providers.openai", "generation.providers.anthropic"))
    ]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if "Editable" not in str(finder)])
    with pytest.raises(MissingExtra) as caught:
        make_provider(name, ProviderSettings())
    assert f"pip install 'chatfold[{sdk}]'" in str(caught.value)


def test_no_sdk_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys; from generation.providers.registry import provider_for; provider_for('scripted'); "
        "sys.exit(any(name in sys.modules for name in ('anthropic', 'openai', 'httpx2')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
