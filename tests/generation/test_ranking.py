"""Which worker acts first: the same order everywhere, each first for its share, and little changes when one goes."""

from __future__ import annotations

from collections import Counter

from events.ids import ChatId, WorkerId
from generation.ranking import LAST_STEP, STEP, ahead, delay, rank, share

WORKERS = tuple(WorkerId(f"worker-{number}") for number in range(5))
CHATS = tuple(ChatId(f"chat-{number}") for number in range(1000))


def first(chat: ChatId, workers: tuple[WorkerId, ...] = WORKERS) -> WorkerId:
    [one] = [worker for worker in workers if rank(chat, worker, workers) == 0]
    return one


def test_all_workers_give_a_chat_the_same_order() -> None:
    for chat in CHATS[:50]:
        places = {worker: rank(chat, worker, WORKERS) for worker in WORKERS}
        assert sorted(places.values()) == [0, 1, 2, 3, 4]
        for worker, place in places.items():
            before = ahead(chat, worker, WORKERS)
            assert {places[each] for each in before} == set(range(place))


def test_each_is_first_for_its_share() -> None:
    shares = Counter(first(chat) for chat in CHATS)
    assert set(shares) == set(WORKERS)
    assert max(shares.values()) < 1.4 * len(CHATS) / len(WORKERS)


def test_where_one_goes_the_others_keep_their_chats() -> None:
    gone, rest = WORKERS[0], WORKERS[1:]
    for chat in CHATS:
        if first(chat) != gone:
            assert first(chat, rest) == first(chat)


def test_who_is_known_not_to_act_comes_last() -> None:
    chat = CHATS[0]
    order = sorted(WORKERS, key=lambda worker: rank(chat, worker, WORKERS))
    assert rank(chat, order[1], WORKERS, behind=order[:1]) == 0
    assert rank(chat, order[3], WORKERS, behind=order[:2]) == 1


def test_a_worker_alone_or_unknown_to_others_is_ranked_all_the_same() -> None:
    assert rank(CHATS[0], WORKERS[0], ()) == 0
    assert 0 <= rank(CHATS[0], WorkerId("new"), WORKERS) <= len(WORKERS)


def test_delays_grow_by_rank_and_are_bounded() -> None:
    assert [delay(place) for place in (0, 1, 2)] == [0, STEP, 2 * STEP]
    assert delay(1000) == LAST_STEP * STEP


def test_each_worker_has_a_share_of_its_own() -> None:
    shares = [share(worker) for worker in WORKERS]
    assert len(set(shares)) == len(WORKERS)
    assert all(0 <= each < 1 for each in shares)
