"""When an answer's frames go out: gates, stalls, failures in the middle, cuts.

Owns the order of things at one position; what the frames hold is the protocols' business, writing them that of
`http_connection`.
"""

from collections.abc import Awaitable, Callable

from chatfold.testing.servers.script import Answer, Cut
from chatfold.testing.servers.wire import Frame

__all__ = ["ConnectionCut", "play_body", "play_frames"]

Send = Callable[[bytes], Awaitable[None]]


class ConnectionCut(Exception):
    """The script says that the connection is to break off here."""

    def __init__(self, how: Cut) -> None:
        """Keep how it breaks off."""
        super().__init__(how)
        self.how = how


def _index(frames: list[Frame], chunks: int | None) -> int | None:
    """How many frames go out before the position after so many chunks."""
    if chunks is None:
        return None
    deltas = [at for at, frame in enumerate(frames) if frame.delta]
    if not deltas:
        return min(1, len(frames))
    return deltas[0] if chunks == 0 else deltas[min(chunks, len(deltas)) - 1] + 1


async def play_frames(
    answer: Answer,
    frames: list[Frame],
    send: Send,
    *,
    ping: Frame,
    failure: Callable[[int], list[Frame]] | None,
    complete: Callable[[], None],
) -> None:
    """Send a stream as the answer says.

    Args:
        answer: Where to wait, fail and cut.
        frames: The stream.
        send: Writes bytes to the client.
        ping: The protocol's keep-alive.
        failure: Makes the frames that report `answer.fail`, if it has one, from the number of frames sent before.
        complete: Called before the last frame: who has read it may count on what the service keeps.

    Raises:
        ConnectionCut: The script cuts the stream here.
    """
    gate_at = _index(frames, answer.gate_after)
    stall_at = _index(frames, answer.stall_after)
    cut_at = _index(frames, answer.cut_after) if answer.cut_after_frames is None else answer.cut_after_frames
    fail_at = None if failure is None else _index(frames, answer.fail_after)
    chunks = 0
    for at in range(len(frames) + 1):
        if at == gate_at and answer.gate is not None:
            await answer.gate.pass_through()
        if at == stall_at:
            await answer.stall.pass_through()
        if at == fail_at and failure is not None:
            await send(b"".join(frame.data for frame in failure(at)))
            return
        if at == cut_at:
            raise ConnectionCut(answer.cut)
        if at == len(frames) - 1:
            complete()
        if at < len(frames):
            await send(frames[at].data)
            chunks += frames[at].delta
            if frames[at].delta and answer.ping_every and chunks % answer.ping_every == 0:
                await send(ping.data)


async def play_body(answer: Answer, body: bytes, send: Send, complete: Callable[[], None]) -> None:
    """Send an answer in one piece: it waits before its body, and a cut leaves half of it unsent.

    `complete` is called before a whole body, as `play_frames` does.

    Raises:
        ConnectionCut: The script cuts the answer here.
    """
    if answer.gate_after is not None and answer.gate is not None:
        await answer.gate.pass_through()
    if answer.stall_after is not None:
        await answer.stall.pass_through()
    if answer.cut_after is not None or answer.cut_after_frames is not None:
        await send(body[: len(body) // 2])
        raise ConnectionCut("close" if answer.cut == "end" else answer.cut)
    complete()
    await send(body)
