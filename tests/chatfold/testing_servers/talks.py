"""A conversation with Anthropic's server over the SDK, as a client keeps it."""

from typing import Any

import anthropic

__all__ = ["Json", "Talk"]

Json = dict[str, Any]


class Talk:
    """Asks, and keeps what was answered; ``more`` is what the first request has beside what the user says."""

    def __init__(self, client: anthropic.AsyncAnthropic, text: str, **more: Any) -> None:
        self._client = client
        self.body: Json = {
            "model": "claude-test",
            "max_tokens": 100,
            **more,
            "messages": [{"role": "user", "content": text}],
        }

    @property
    def messages(self) -> list[Json]:
        found: list[Json] = self.body["messages"]
        return found

    async def ask(self, text: str | None = None, *, stream: bool = True) -> Any:
        """Say something more, or have a paused answer go on; return the answer."""
        if text is not None:
            self.messages.append({"role": "user", "content": text})
        if stream:
            async with self._client.messages.stream(**self.body) as streamed:
                answer: Any = await streamed.get_final_message()
        else:
            answer = await self._client.messages.create(**self.body)
        content = [block.model_dump(exclude_none=True) for block in answer.content]
        if self.messages[-1]["role"] == "assistant":
            self.messages[-1]["content"] += content
        else:
            self.messages.append({"role": "assistant", "content": content})
        return answer
