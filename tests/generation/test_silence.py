"""One watch for all streams: who is silent is cancelled, who is heard goes on, whatever the others do."""

import asyncio

import pytest

from generation.actions.silence import SilenceWatch

LONG = 1000.0


async def _listen(watch: SilenceWatch, *limits: float) -> str:
    """Be heard with each limit after the first at once, then be silent; say how that ended."""
    guard = watch.guard(limits[0], LONG, _never)
    try:
        for limit in limits[1:]:
            guard.heard(limit)
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "silent" if guard.expired else "cancelled"
    finally:
        guard.end()
    return "never"


def _never() -> None:
    raise AssertionError("it did end")


@pytest.mark.parametrize("limits", [(0.0,), (LONG, 0.0), (LONG, LONG, 0.0), (0.0, LONG, 0.0)])
async def test_the_silent_one_is_cancelled_and_the_others_are_not(limits: tuple[float, ...]) -> None:
    watch = SilenceWatch()
    before, after = (asyncio.create_task(_listen(watch, 0.5 * LONG)), asyncio.create_task(_listen(watch, 0.0, LONG)))
    assert await _listen(watch, *limits) == "silent"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "a cancellation of its own is taken back"
    assert not before.done()
    assert not after.done()
    for other in (before, after):
        other.cancel()
    assert {await before, await after} == {"cancelled"}


async def test_one_after_the_other_is_found() -> None:
    watch = SilenceWatch()
    for _ in range(3):
        assert await _listen(watch, 0.0) == "silent"
    assert await asyncio.gather(*(_listen(watch, n / 1e6) for n in range(20))) == ["silent"] * 20


async def test_what_neither_ends_nor_speaks_is_said_to_hang_and_what_speaks_again_is_not() -> None:
    watch, hangs = SilenceWatch(), asyncio.Event()
    guard = watch.guard(0.0, 0.0, hangs.set)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.Event().wait()
    await hangs.wait()
    guard.heard(LONG)
    assert not guard.expired
    guard.end()
    assert watch.guard(LONG, LONG, _never).deadline > asyncio.get_running_loop().time()


class Later(asyncio.SelectorEventLoop):
    """A loop that runs long after the one before."""

    def time(self) -> float:
        return super().time() + 2 * LONG


def test_on_another_loop_it_begins_anew() -> None:
    """An engine may be closed and opened again on the next loop; the timer of the first never came."""
    watch = SilenceWatch()

    async def left() -> None:
        watch.guard(LONG, LONG, _never)

    async def silent() -> str:
        async with asyncio.timeout(10):
            return await _listen(watch, 0.0)

    asyncio.run(left())
    with asyncio.Runner(loop_factory=Later) as runner:
        assert runner.run(silent()) == "silent"
