"""What a SKILL.md says: YAML front matter with the skill's name and description, then its instructions. No I/O."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FRONT: Final = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


class SkillInvalid(Exception):
    """A text is not a skill's; says why."""


class SkillFile(NamedTuple):
    """A SKILL.md by its pieces."""

    name: str
    description: str
    body: str


def parse_skill(text: str) -> SkillFile:
    """Return a SKILL.md by its pieces.

    Raises:
        SkillInvalid: It has no front matter, or that is no YAML mapping with a name and a description.
    """
    front = _FRONT.match(text)
    if front is None:
        raise SkillInvalid("begins with no front matter between lines of ---")
    fields = _mapping(front[1])
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not name.strip():
        raise SkillInvalid("its front matter has no name")
    if not isinstance(description, str) or not description.strip():
        raise SkillInvalid("its front matter has no description")
    return SkillFile(name.strip(), description.strip(), text[front.end() :].strip("\r\n"))


def _mapping(front: str) -> dict[object, object]:
    import yaml  # loaded for skills alone: most processes read none

    try:
        # The base loader makes texts, lists and mappings and nothing else: a name that looks like a number or a date
        # stays what was written. The one in C, which not every build has, takes a thirtieth of the time.
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)(front)
        try:
            value = loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError) as error:
        said = (str(error).strip().splitlines() or ["it is nested too deep"])[0]
        raise SkillInvalid(f"its front matter is no YAML: {said}") from None
    if not isinstance(value, dict):
        raise SkillInvalid("its front matter is no mapping")
    return value
