"""The tools by which a model reads skills: their texts and files, when it needs them. Who has them is the source's."""

from __future__ import annotations

from typing import Any

from generation.context import SkillSource, SkillUnavailable
from generation.tools.contract import Tool, ToolContext, ToolOutput


def skill_tools(source: SkillSource) -> tuple[Tool, ...]:
    """Return ``read_skill`` and ``read_skill_file`` over a source."""

    async def read_skill(context: ToolContext, name: str) -> ToolOutput:  # noqa: D417 - models read it
        """Read the instructions of a skill that is named among the available skills.

        Args:
            name: The skill's name.
        """
        try:
            found = await source.read_skill(context.chat, name)
        except SkillUnavailable as error:
            return ToolOutput(str(error), is_error=True)
        answer: dict[str, Any] = {"name": found.name, "dir": found.directory, "body": found.body}
        return ToolOutput({**answer, "files": list(found.files)})

    async def read_skill_file(context: ToolContext, name: str, path: str) -> ToolOutput:  # noqa: D417 - models read it
        """Read a file of a skill.

        Args:
            name: The skill's name.
            path: The file's path, relative to the skill's folder.
        """
        try:
            return ToolOutput({"content": await source.read_skill_file(context.chat, name, path)})
        except SkillUnavailable as error:
            return ToolOutput(str(error), is_error=True)

    # Reading twice does no harm: a call whose worker died is run again.
    return tuple(Tool.from_function(function, crash="rerun") for function in (read_skill, read_skill_file))
