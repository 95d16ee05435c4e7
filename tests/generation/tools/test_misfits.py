"""Why a tool does not take arguments, in words that have no value of theirs."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from generation.tools.contract import Tool
from generation.tools.misfits import misfits


class Item(BaseModel):
    count: int


def _checked(value: str) -> str:
    raise ValueError(f"{value} is none")


def order(
    cents: str = "",
    times: int = 1,
    side: Literal["left", "right"] = "left",
    items: list[Item] = [],  # noqa: B006 -- never changed
    either: int | list[str] = 1,
    row: Annotated[int, Field(le=5)] = 1,
    code: Annotated[str, AfterValidator(_checked)] = "",
) -> None:
    """Order."""


ORDER: Final = Tool.from_function(order)
GIVEN: Final = {
    '{"cents": 100}': "cents: must be text, is a number",
    '{"times": "secret"}': "times: must be a whole number, is text",
    '{"times": null}': "times: must be a whole number, is null",
    '{"side": "secret"}': "side: must be 'left' or 'right'",
    '{"items": [{"count": "secret"}]}': "items: a value in it must be a whole number, is text",
    '{"items": {"secret": 1}}': "items: must be a list, is an object",
    '{"either": "secret"}': "either: must be a whole number or a list, is text",
    '{"either": [1]}': "either: is not taken by the check of its declaration",
    '{"row": 7}': "row: must be less than or equal to 5",
    '{"code": "secret"}': "code: is not taken by the check of its declaration",
    '{"price": "secret"}': "price is not known",
    '["secret"]': "they are no JSON object",
    '{"cents": "100"}': "",
}


@pytest.mark.parametrize("given", GIVEN)
def test_why_arguments_are_not_taken_is_said_without_their_values(given: str) -> None:
    assert "; ".join(misfits(ORDER, given)) == GIVEN[given]
