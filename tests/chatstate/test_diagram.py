"""Diagrams: the machine's edges are the table's, a chat's are its log's, and the three notations say the same."""

from __future__ import annotations

import re

from chatstate.classify import STATUS_OF, X
from chatstate.diagram import Edge, dot, machine_edges, markdown, mermaid, path_edges
from chatstate.table import ANY_TRIGGERS, TABLE
from tests.chatstate import build as b
from tests.chatstate.reach import reach


def test_the_machine_over_execution_states_has_every_outcome_of_the_table() -> None:
    edges = machine_edges("execution", everything=True)
    listed = {
        Edge("none" if x is X.N else str(x), trigger, str(outcome))
        for x, cells in TABLE.items()
        for trigger, cell in cells.items()
        for outcome in cell.outcomes
    }
    assert set(edges) == listed
    assert set(edges.values()) == {0}


def test_the_machine_over_statuses_has_the_five_and_before_and_invalid() -> None:
    nodes = {node for edge in machine_edges() for node in (edge.source, edge.dest)}
    assert nodes == {*STATUS_OF.values(), "invalid"}
    assert not {edge.trigger for edge in machine_edges()} & set(ANY_TRIGGERS)


def test_a_chats_path_has_the_edges_it_took_with_counts_in_order() -> None:
    chat = reach(X.R1, 3)
    assert path_edges(chat.log) == {
        Edge("none", "create", "pending"): 1,
        Edge("pending", "acquire", "running"): 1,
        Edge("running", "send", "running"): 3,
    }
    assert path_edges(chat.log, "execution")[Edge("R1", "send", "R1")] == 2


def test_every_edge_of_a_path_is_one_of_the_machine() -> None:
    chat = reach(X.XE1)
    assert set(path_edges(chat.log, "execution")) <= set(machine_edges("execution", everything=True))


def test_mermaid_draws_one_arrow_between_two_nodes_with_all_triggers() -> None:
    chat = reach(X.A1)
    lines = mermaid(path_edges(chat.log)).splitlines()
    assert lines[0] == "stateDiagram-v2"
    assert "    [*] --> pending: create" in lines
    assert "    running --> running: start_attempt, commit_step, send" in lines
    arrow = re.compile(r"    (\[\*\]|\w+) --> \w+: [a-z_]+( x\d+)?(, [a-z_]+( x\d+)?)*")
    assert all(arrow.fullmatch(line) for line in lines[1:])


def test_dot_names_the_same_arrows() -> None:
    chat = reach(X.R1, 2)
    text = dot(path_edges(chat.log))
    assert text.startswith("digraph chat {\n")
    assert text.endswith("}\n")
    assert '    "running" -> "running" [label="send x2"];' in text
    both = machine_edges("execution")
    assert len(re.findall(" -> ", dot(both))) == len(re.findall(" --> ", mermaid(both)))
    assert r"\n" in dot(both)


def test_markdown_has_a_row_for_each_edge_and_counts_where_there_are_any() -> None:
    counted = markdown(path_edges(reach(X.R0).log)).splitlines()
    assert counted == [
        "| from | trigger | to | times |",
        "| --- | --- | --- | --- |",
        "| none | create | pending | 1 |",
        "| pending | acquire | running | 1 |",
    ]
    assert markdown(machine_edges()).startswith("| from | trigger | to |\n")


def test_a_path_through_every_status() -> None:
    chat = reach(X.A0)
    chat.do(b.submit(chat))
    chat.do(b.acquire())
    chat.do(b.fail(chat))
    statuses = {edge.dest for edge in path_edges(chat.log)}
    assert statuses == {"pending", "running", "requires_action", "error"}
