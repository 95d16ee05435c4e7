"""What agents said in each request when a log was written, where that was kept: system texts, tools.

A log has digests of it alone. Kept by the revision of the agent that a policy records, it lets a rerun make the same
requests without the agents: what a rerun then makes otherwise is another way of building requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from chatfold.rerunning.declared_tool import DeclaredTool
from chatfold.rerunning.kept import FORM, read_kept, write_kept
from chatfold.rerunning.sections import Section
from events.given import checked_kind
from events.records import Policy
from generation.agents import Agent
from generation.policy import system_of, tool_policy
from generation.providers.native import ProviderTool

DECLARATIONS: Final = "declarations.json"
"""What agents said when the logs of a folder were written."""


class Declaration(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What one agent said in each request.

    Attributes:
        system: Its system texts.
        tools: Its tools as models see them, active or not.
        native: What the service runs for it.
    """

    system: tuple[str, ...] = ()
    tools: tuple[DeclaredTool, ...] = ()
    native: tuple[ProviderTool, ...] = ()


class Declarations(Struct, kw_only=True):
    """What agents said, by the revisions that policies have of them."""

    chatfold_declarations: int = FORM
    agents: dict[str, Declaration] = field(default_factory=dict)

    def take(self, agent: Agent, revision: str | None = None) -> None:
        """Keep what an agent says; under another revision where a log has its own for it (``record`` gives one)."""
        self.agents[agent.revision if revision is None else revision] = Declaration(
            system=agent.system_texts,
            tools=tuple(
                DeclaredTool(name=tool.name, description=tool.description, schema=tool.schema) for tool in agent.tools
            ),
            native=tuple(agent.provider_tools),
        )

    def of(self, agent: str, policies: Iterable[Policy]) -> Declaration | None:
        """Return what an agent said under all policies of a log; None where that is not known, or it changed."""
        revisions = list({policy.revision for policy in policies if policy.agent == agent})
        return self.agents.get(revisions[0]) if len(revisions) == 1 else None


def says(agent: Agent, policy: Policy) -> bool:
    """Whether an agent says in each request what was said under a policy: the same system texts, and all its tools.

    Its revision is another one where its limits changed, and where its log was redacted; that does not matter here.
    """
    own = {tool.name: tool_policy(tool).schema for tool in agent.tools}
    same_tools = all(own.get(tool.name) == tool.schema for tool in policy.tools)
    return agent.name == policy.agent and system_of(agent) == policy.system and same_tools


NOTHING_KEPT: Final = Declarations()


def read_declarations(path: Path) -> Declarations:
    """Return what a file of declarations holds; nothing where there is none.

    Raises:
        KeptFileError: It is none, or cannot be read.
        InvalidValue: It is no path.
    """
    checked_kind(path, Path, "$.path", "a Path")
    return read_kept(path, "declarations", Declarations) if path.exists() else Declarations()


def declarations_beside(log: str | Path) -> Declarations:
    """Return the declarations in the folder of a log file; nothing where there is no file of them.

    Raises:
        KeptFileError: What is there is no file of declarations, or cannot be read.
    """
    return read_declarations(Path(log).parent / DECLARATIONS)


def write_declarations(path: Path, declarations: Declarations) -> None:
    """Write a file of declarations, the same bytes for the same declarations.

    Raises:
        InvalidValue: It is no path, or these are none.
        OSError: It cannot be written.
    """
    checked_kind(declarations, Declarations, "$.declarations", "declarations, as read_declarations gives them")
    write_kept(path, declarations)


def sections_known(policies: Mapping[str, Policy], declarations: Declarations) -> Mapping[str, frozenset[Section]]:
    """Return, by the digest of each policy of a log, the sections of its requests that follow from what is at hand.

    Options follow from a policy alone where it says that there are none beside those that it has.
    """
    return {digest: frozenset(_known(policy, policies, declarations)) for digest, policy in policies.items()}


def _known(policy: Policy, policies: Mapping[str, Policy], declarations: Declarations) -> Iterable[Section]:
    declared = declarations.of(policy.agent, policies.values())
    if declared is not None:
        yield "tools"
    if declared is not None or all(not each.system for each in policies.values() if each.agent == policy.agent):
        yield "system"
    models = [model for model in (policy.model, policy.compaction_model) if model is not None]
    # A chat of an older level has neither recorded.
    if policy.retry_unit_us is not None and not any(model.options for model in models):
        yield "options"
