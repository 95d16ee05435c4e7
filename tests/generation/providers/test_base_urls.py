"""Where a service is: a URL that is none is refused at once, and one that leads nowhere is named, without secrets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Final

import pytest

from chatfold import Agent, Engine, InvalidValue, Limits, Settings
from events.vocabulary import RetryScheduled
from generation.errors import GenerationError, InvalidBaseUrl, ProviderError
from generation.prompt_types import ModelRequest, PromptMessage, PromptText
from generation.providers.base_url import check_base_url, host_of
from generation.providers.registry import ProviderSettings, make_provider

SDKS: Final = ("anthropic", "openai", "openai-chat")
NO_URLS: Final = {
    "": "http://HOST",
    "foo": "http://HOST",
    "htp://x": "http://HOST",
    "http://": "http://HOST",
    "http:/x": "http://HOST",
    "localhost:8000": "http://HOST",
    "http://x:port": "Port could not be cast",
    "http://x:99999": "Port out of range",
    "http://[::1": "IPv6",
    "http://x y": "blanks or control characters",
    "http://x\n": "blanks or control characters",
    "http://x/v1?key=1": "no query and no fragment",
    "http://x/v1#a": "no query and no fragment",
    "ftp://user:hunter2@x": "http://HOST",
    "http://user:hunter2@x?y": "no query and no fragment",
}


@pytest.mark.parametrize("url", NO_URLS, ids=repr)
@pytest.mark.parametrize("name", SDKS)
def test_what_is_no_url_is_refused_when_the_provider_is_made(
    name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidBaseUrl, match=NO_URLS[url]) as caught:
        make_provider(name, ProviderSettings(base_url=url, api_key="k"))
    assert str(caught.value).startswith("base_url: ")
    assert "hunter2" not in str(caught.value)
    variable = "ANTHROPIC_BASE_URL" if name == "anthropic" else "OPENAI_BASE_URL"
    monkeypatch.setenv(variable, url.strip() or "foo")
    if url != "http://x\n":
        with pytest.raises(InvalidBaseUrl, match=variable):
            make_provider(name, ProviderSettings(api_key="k"))


@pytest.mark.parametrize("url", NO_URLS, ids=repr)
def test_settings_take_no_such_url(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValue, match=NO_URLS[url]):
        Settings(base_url=url)
    monkeypatch.setenv("CHATFOLD_BASE_URL", url)
    with pytest.raises(InvalidValue, match=NO_URLS[url]):
        Settings()


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/v1", "https://api.example.com", "http://[::1]:8/", "http://u:p@h"]
)
def test_what_is_a_url(url: str) -> None:
    assert check_base_url(url) == url
    assert Settings(base_url=url).base_url == url


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://user:hunter2@h:8/v1?k=v", "h:8"),
        ("https://h/v1", "h"),
        ("http://[::1]:8/", "[::1]:8"),
        ("foo", ""),
        ("http://h:x", ""),
    ],
)
def test_what_is_shown_of_a_url(url: str, host: str) -> None:
    assert host_of(url) == host


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as taken:  # bound and not listening: nobody else gets the port, and a connection is refused
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize("name", SDKS)
async def test_a_service_that_is_not_there_is_named_with_the_cause(name: str, closed_port: int) -> None:
    url = f"http://user:hunter2@127.0.0.1:{closed_port}/v1"
    provider = make_provider(name, ProviderSettings(base_url=url, api_key="k"))
    request = ModelRequest(
        model="m", system=(), messages=(PromptMessage(role="user", parts=(PromptText(text="Hi."),)),), max_output=5
    )
    with pytest.raises(ProviderError) as caught:
        async for _ in provider.stream(request):
            pass
    await provider.close()
    error = caught.value.error
    assert (error.kind, error.retryable) == ("timeout", True)
    assert error.detail == f"cannot reach 127.0.0.1:{closed_port}: Connection refused"
    assert error.message.endswith(f" cannot be reached: {error.detail}.")
    assert "hunter2" not in f"{error.message}{error.detail}"


async def test_it_stands_in_the_retry_and_in_the_failed_turn(closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    agent = Agent(name="a", model="openai/m", limits=Limits(max_model_attempts=2))
    settings = Settings(base_url=f"http://127.0.0.1:{closed_port}", model_retry_unit=0.001)
    async with Engine("memory://", [agent], settings=settings) as engine:
        await engine.create_chat("a", "Hi.", chat_id="c")
        error = (await engine.settled("c")).control.last_error
        events = [recorded.event for recorded in await engine.events("c")]
    said = f"cannot reach 127.0.0.1:{closed_port}: Connection refused"
    assert error is not None
    assert error.detail is not None
    assert error.detail.text == said
    retries = [event.error.detail for event in events if isinstance(event, RetryScheduled)]
    assert [detail.text for detail in retries if detail is not None] == [said]


async def test_a_worker_of_an_agent_whose_service_has_no_url_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "foo")
    with pytest.raises(InvalidBaseUrl, match="OPENAI_BASE_URL"):
        async with Engine("memory://", [Agent(name="a", model="openai/m")]):
            pass
    async with Engine("memory://", [Agent(name="a", model="scripted")]) as engine:
        await engine.create_chat("a", "Hi.", chat_id="c", model="openai/m")
        error = (await engine.settled("c")).control.last_error
    assert error is not None
    assert error.kind == "config"
    assert "OPENAI_BASE_URL" in error.message.text
    assert issubclass(InvalidBaseUrl, GenerationError)
