"""Servers used without an event loop: from threads, and from other processes."""

import subprocess
import sys
import threading

import anthropic
import openai
import pytest

from chatfold.testing.servers import Answer, AnthropicServer, Gate, OpenAIChatServer, Signal

CHILD = """
import sys, openai
client = openai.OpenAI(base_url=sys.argv[1], api_key="test", max_retries=0)
for chunk in client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi."}], stream=True):
    print(chunk.choices[0].delta.content or "", end="", flush=True)
"""


def test_a_synchronous_client_and_a_gate() -> None:
    gate = Gate()
    texts: list[str] = []

    def ask(url: str) -> None:
        with anthropic.Anthropic(base_url=url, api_key="test", max_retries=0) as client:
            message = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi."}])
            texts.extend(block.text for block in message.content if block.type == "text")

    with AnthropicServer([Answer("Hello.", gate=gate)]) as server:
        asking = threading.Thread(target=ask, args=(server.base_url,))
        asking.start()
        gate.block_until_reached()
        assert gate.is_reached
        server.block_for_requests(1)
        assert texts == []
        gate.release()
        asking.join()
    assert texts == ["Hello."]


async def test_a_synchronous_client_in_an_event_loop() -> None:
    """The server answers even while the test's loop is blocked."""
    async with OpenAIChatServer([Answer("Hello.")]) as server:
        with openai.OpenAI(base_url=server.base_url, api_key="test", max_retries=0) as client:
            answer = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi."}])
            assert answer.choices[0].message.content == "Hello."


def test_another_process_is_killed_in_the_middle() -> None:
    answer = Answer("Hello from the server.", stall_after=1)
    with OpenAIChatServer([answer, Answer("Fine.")]) as server:
        command = [sys.executable, "-c", CHILD, server.base_url]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            answer.stall.block_until_reached(within=60)
            assert child.stdout is not None
            assert child.stdout.read(8) == b"Hello fr"
            child.kill()
            server.requests[0].hung_up.block()
            assert server.requests[0].closed_early
        done = subprocess.run(command, check=True, capture_output=True, timeout=60)
        assert done.stdout == b"Fine."


def test_a_server_runs_once_at_a_time() -> None:
    server = AnthropicServer([])
    with pytest.raises(RuntimeError, match="does not run"):
        _ = server.url
    with server:
        with pytest.raises(RuntimeError, match="runs already"):
            server.start()
        first = server.url
    with server:
        assert server.url.startswith("http://127.0.0.1:")
    server.stop()
    assert first.startswith("http://127.0.0.1:")


async def test_signals() -> None:
    signal = Signal("the bell")
    with pytest.raises(TimeoutError, match="the bell: did not happen within"):
        await signal.wait(within=0.01)
    threading.Timer(0.01, signal.set).start()
    await signal.wait()
    signal.set()
    signal.block()
    assert signal.is_set
