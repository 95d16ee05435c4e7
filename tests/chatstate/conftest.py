"""Checks the prompts of the logs that tests of the machine write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from chatfold.testing.prompts import prompt_problems
from tests.chatstate.chat import Chat

MOST = 50
"""Chats of one test whose logs are checked; walks through the whole machine check their own."""


@pytest.fixture(autouse=True)
def prompts_of_chats_are_valid(request: pytest.FixtureRequest) -> Iterator[None]:
    made: list[Chat] = []
    init = Chat.__init__

    def making(self: Chat, *args: Any) -> None:
        init(self, *args)
        if len(made) < MOST:
            made.append(self)

    with patch.object(Chat, "__init__", making):
        yield
    if request.node.get_closest_marker("odd_prompts") is None:
        problems = [
            problem for chat in made if chat.log and chat.log[0].version == 1 for problem in prompt_problems(chat.log)
        ]
        assert not problems, "\n".join(problems)
