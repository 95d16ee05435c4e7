"""The simulated loop and its machine: time that jumps, hosts that die and stand still, ends that are told."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable
from itertools import count
from random import Random

import anyio.to_thread
import pytest

from chatfold.testing.simulation.machine import EPOCH_US, simulated_machine
from chatfold.virtual.loop import WORLD, Host, SimulatedLoop


def run(
    main: Callable[[SimulatedLoop], Awaitable[None]], *, seed: int = 1, shuffled: bool = False, steps: int = 10_000
) -> SimulatedLoop:
    """Run a program to its end, or to the loop's verdict."""
    loop = SimulatedLoop(Random(seed), steps=steps, shuffled=shuffled)
    with simulated_machine(loop, Random(seed)):
        context = WORLD.context()

        async def program() -> None:
            await main(loop)

        task = loop.create_task(program(), context=context)
        task.add_done_callback(lambda _: loop.stop())
        loop.run_forever()
        if task.done():
            task.result()
        else:
            task.cancel()
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            task.get_coro().close()
        loop.close()
    return loop


def test_time_jumps_to_the_next_timer() -> None:
    began = time.monotonic()
    seen: list[tuple[float, float, int]] = []

    async def program(loop: SimulatedLoop) -> None:
        await asyncio.sleep(86_400)
        seen.append((loop.time(), time.monotonic(), time.time_ns() // 1000))

    run(program)
    assert seen == [(86_400.0, 86_400.0, EPOCH_US + 86_400_000_000)]
    assert time.monotonic() - began < 60


def test_what_is_drawn_is_the_seeds() -> None:
    drawn: list[tuple[bytes, float]] = []

    async def program(loop: SimulatedLoop) -> None:
        drawn.append((os.urandom(8), random.random()))

    for seed in (1, 1, 2):
        run(program, seed=seed)
    assert drawn[0] == drawn[1] != drawn[2]


def order_of_steps(seed: int, *, shuffled: bool) -> list[int]:
    order: list[int] = []

    async def program(loop: SimulatedLoop) -> None:
        async def step(number: int) -> None:
            order.append(number)

        await asyncio.gather(*(step(number) for number in range(8)))

    run(program, seed=seed, shuffled=shuffled)
    return order


def test_steps_that_are_ready_together_swap_places_where_that_is_asked() -> None:
    assert order_of_steps(1, shuffled=False) == list(range(8))
    orders = {tuple(order_of_steps(seed, shuffled=True)) for seed in range(5)}
    assert len(orders) == 5
    assert all(sorted(order) == list(range(8)) for order in orders)


def test_a_dead_host_does_nothing_more_and_cleans_nothing_up() -> None:
    done: list[str] = []

    async def program(loop: SimulatedLoop) -> None:
        host = Host("h")

        async def work() -> None:
            try:
                await asyncio.sleep(1)
                done.append("worked")
            finally:
                done.append("cleaned up")

        task = loop.create_task(work(), context=host.context())
        await asyncio.sleep(0.5)
        host.dead = True
        task.cancel()
        await asyncio.sleep(10)
        assert done == []
        task._log_destroy_pending = False  # type: ignore[attr-defined]

    run(program)


def test_a_host_that_stands_still_goes_on_where_it_was() -> None:
    ticks: list[float] = []

    async def program(loop: SimulatedLoop) -> None:
        host = Host("h")

        async def tick() -> None:
            for _ in range(3):
                await asyncio.sleep(1)
                ticks.append(loop.time())

        task = loop.create_task(tick(), context=host.context())
        await asyncio.sleep(1.5)
        host.stopped = True
        await asyncio.sleep(10)
        loop.resume(host)
        await task

    run(program)
    assert ticks == [1.0, 11.5, 12.5]


def test_a_hosts_wall_clock_may_be_wrong() -> None:
    seen: list[int] = []

    async def program(loop: SimulatedLoop) -> None:
        host = Host("h")
        host.ahead = 3_000_000

        async def look() -> None:
            seen.append(time.time_ns() // 1000)

        await loop.create_task(look(), context=host.context())

    run(program)
    assert seen == [EPOCH_US + 3_000_000]


def test_threads_are_steps_in_virtual_time() -> None:
    async def program(loop: SimulatedLoop) -> None:
        assert await anyio.to_thread.run_sync(loop.time) <= loop.time()
        assert await loop.run_in_executor(None, sum, [1, 2]) == 3
        with pytest.raises(ZeroDivisionError):
            await anyio.to_thread.run_sync(lambda: 1 // 0)

    run(program)


def test_a_deadlock_is_told() -> None:
    async def program(loop: SimulatedLoop) -> None:
        await loop.create_future()

    assert run(program).failure == "deadlock: nothing is ready, and no timer runs"


def test_a_livelock_is_told() -> None:
    async def program(loop: SimulatedLoop) -> None:
        for _ in count():
            await asyncio.sleep(0.001)

    assert (run(program).failure or "").startswith("livelock: ")


def test_what_nobody_catches_is_told() -> None:
    async def program(loop: SimulatedLoop) -> None:
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    assert "ZeroDivisionError" in (run(program).failure or "")


@pytest.mark.parametrize("dies", [True, False])
def test_an_error_that_nobody_looked_at_is_told_unless_its_host_is_dead(*, dies: bool) -> None:
    """It waits to be looked at until all tasks of a group have ended: where the host dies first, nobody is to blame."""
    host, kept = Host("process"), list[asyncio.Task[None]]()

    async def fail() -> None:
        raise ConnectionError

    async def program(loop: SimulatedLoop) -> None:
        kept.append(loop.create_task(fail(), context=host.context()))
        await asyncio.sleep(1)
        host.dead = dies

    loop = run(program)
    assert [type(error) for error in loop.unretrieved()] == ([] if dies else [ConnectionError])
