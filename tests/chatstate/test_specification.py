"""The production table equals the specification, cell by cell: a cell changed on either side fails here."""

from __future__ import annotations

import re

from chatfold._docs.state_machine_page import render, user_rows
from chatstate.classify import STATUS_OF, X
from chatstate.table import ANY_TRIGGERS, FENCES, TABLE
from tests.chatstate.cases import allowed
from tests.chatstate.specification import WORKERS, Arc, section, tables, user_arcs, ways, worker_trigger

USERS, OTHERS = tables(section(2))

AND_THE_LIKE: tuple[str, ...] = ("mark_context", "set_active_tools", "set_turn_label", "record_side_call")
"""Triggers that happen as those of its first line do, which ends with these words (decision 0034)."""

(WORKER_ROWS,) = tables(section(3))


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def from_others() -> set[Arc]:
    arcs: set[Arc] = set()
    for names, cell in OTHERS[1:]:
        if names.startswith("fork;"):
            created, imported = list(ways("fork", cell))
            arcs |= {created, imported._replace(trigger="import_messages")}
        elif names.startswith("title"):
            titles = [f"set_{name}" for name in names.removesuffix(" changed").split(", ")]
            arcs |= {arc for trigger in (*titles, *AND_THE_LIKE) for arc in ways(trigger, cell)}
        elif names == "content erased; chat adopted":
            arcs |= {*ways("erase", cell), *ways("adopt", cell)}
        else:
            assert names == "uncompacted"
            arcs |= set(ways("uncompact", cell))
    return arcs


def from_sentences(arcs: set[Arc]) -> set[Arc]:
    """Add and take away what the specification says in sentences beside its tables."""
    text = words(section(2))
    archived = re.search(r"allowed in every existing state \(archived: (\w+) and (\w+)\)", text)
    create = re.search(r"Create: N -> (\w+) \(with at least one message to answer\) or N -> (\w+) \(system", text)
    assert "*Edit queued* and *reorder queue* are legal exactly where delete queued is, and leave the state" in text
    assert archived
    assert create
    kept = {f"set_{name}" for name in archived.groups()}
    changed = {
        arc
        for arc in arcs
        if not (
            arc.state.startswith("X")
            and (arc.trigger.startswith("set_") or arc.trigger in AND_THE_LIKE)
            and arc.trigger not in kept
        )
    }
    changed.add(Arc("N", "create", "usual", (create[1],)))
    changed.add(Arc("N", "create", "unanswered", (create[2],)))
    for arc in [arc for arc in arcs if arc.trigger == "delete_queued"]:
        changed |= {Arc(arc.state, trigger, "usual", (arc.state,)) for trigger in ("edit_queued", "reorder_queue")}
    return changed


def specified() -> set[Arc]:
    workers = {arc for row in WORKER_ROWS[1:] for arc in ways(WORKERS[worker_trigger(row[0])], row[1])}
    return from_sentences({*user_arcs(USERS), *from_others(), *workers})


def produced() -> set[Arc]:
    return {
        Arc(str(x), trigger, case, tuple(str(outcome) for outcome in outcomes))
        for x, cells in TABLE.items()
        for trigger, cell in cells.items()
        for case, outcomes in cell._asdict().items()
        if outcomes
    }


def test_every_cell_of_the_specification_is_in_the_table_and_no_other_is() -> None:
    asked, there = specified(), produced()
    assert sorted(asked - there) == []
    assert sorted(there - asked) == []
    assert len(asked) > 200


def test_each_row_of_the_workers_table_is_read() -> None:
    assert [WORKERS[worker_trigger(row[0])] for row in WORKER_ROWS[1:]] == list(WORKERS.values())


def test_a_changed_cell_is_seen() -> None:
    rows = [list(row) for row in USERS]
    rows[1][1] = "P0"
    assert set(user_arcs(rows)) != set(user_arcs(USERS))
    assert set(ways("acquire", "P0 -> R1")) != set(ways("acquire", "P0 -> R0"))


def test_the_users_table_of_the_docs_is_the_specifications_to_the_letter() -> None:
    # An interrupt of an interruption is refused while the lease lives: the specification writes x before the italics.
    assert list(user_rows()) == USERS[1:]


def test_fences_are_those_of_the_specification() -> None:
    asked = {WORKERS[worker_trigger(name)]: fence for name, _, fence in WORKER_ROWS[1:]}
    database = {trigger for trigger, fence in asked.items() if "database time" in fence} | {"reconcile"}
    assert database == {"acquire", "expire_action", "expire_action_end_turn", "reconcile"}
    assert {trigger: ", ".join(names) for trigger, names in FENCES.items()} == {
        trigger: fence for trigger, fence in asked.items() if trigger not in database
    }
    fenced = {case.trigger for case in allowed() if hasattr(case.command.command, "fence")}
    assert set(FENCES) == fenced


def test_states_are_those_of_the_specification() -> None:
    (rows,) = tables(section(1))
    statuses: dict[str, str] = {}
    for names, status, *_ in rows[1:]:
        for place, name in enumerate(names.split()):
            # "waiting / error | as W, E": the first name has the first status.
            given = status.split(" / ")
            statuses[name] = given[min(place, len(given) - 1)]
    listed = {str(x): status for x, status in STATUS_OF.items() if x is not X.N}
    assert {name: status for name, status in statuses.items() if name not in ("N", "Invalid")} == listed
    assert set(statuses) == {str(x) for x in X}


def test_the_page_names_every_trigger_and_every_state() -> None:
    page = render()
    triggers = {trigger for cells in TABLE.values() for trigger in cells}
    shown = {name for name in triggers if f"`{name}`" in page or name.replace("_", " ") in page}
    assert shown == triggers
    assert set(ANY_TRIGGERS) <= shown
    for x in X:
        assert f"| {x} |" in page
