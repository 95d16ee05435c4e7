"""A cancelled caller waits for the outcome of what it handed over, however it is cancelled."""

import asyncio

import anyio
import pytest

from store.shield import Reply, outcome


async def test_the_result_and_the_error_pass() -> None:
    loop = asyncio.get_running_loop()
    good, bad = loop.create_future(), loop.create_future()
    good.set_result(7)
    bad.set_exception(ValueError("bad"))
    assert await outcome(good) == 7
    with pytest.raises(ValueError, match="bad"):
        await outcome(bad)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("of_a_reply", [False, True])
async def test_a_task_that_is_cancelled_waits_first(fails: bool, of_a_reply: bool) -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    reply = Reply[int](future)
    task = asyncio.create_task(reply.outcome() if of_a_reply else outcome(future))
    for _ in range(3):
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    if fails:
        (reply.fail if of_a_reply else future.set_exception)(ValueError("nobody sees this"))
    else:
        (reply.give if of_a_reply else future.set_result)(7)
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_scope_that_is_cancelled_waits_first() -> None:
    future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    order: list[str] = []

    async def caller() -> None:
        try:
            await outcome(future)
        finally:
            order.append("caller")

    async with anyio.create_task_group() as group:
        group.start_soon(caller)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            order.append("set")
            future.set_result(7)
    assert order == ["set", "caller"]


async def test_a_reply_given_while_its_caller_is_being_cancelled_keeps_nobody() -> None:
    for give_first in (True, False):
        reply = Reply[int](asyncio.get_running_loop().create_future())
        task = asyncio.create_task(reply.outcome())
        await asyncio.sleep(0)
        if give_first:
            reply.give(7)
        task.cancel()
        if not give_first:
            reply.give(7)
        await asyncio.wait([task])
        assert task.cancelled()


async def test_a_reply_passes_its_result_and_its_error() -> None:
    loop = asyncio.get_running_loop()
    good, bad = Reply[int](loop.create_future()), Reply[int](loop.create_future())
    good.give(7)
    bad.fail(ValueError("bad"))
    assert await good.outcome() == 7
    with pytest.raises(ValueError, match="bad"):
        await bad.outcome()
