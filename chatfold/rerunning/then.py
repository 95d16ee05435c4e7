"""The texts of then, as far as they were kept beside a log: those of sections, and what declarations make again.

A log run again without agents and with what was kept of them makes the requests of then, and so their texts. That
takes as long as any rerun: it is done where something was found to differ, and words for it are looked for.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from chatfold.rerunning.declarations import Declarations, declarations_beside
from chatfold.rerunning.run import rerun_events
from chatfold.rerunning.sections import Sections, sections_beside
from events.envelope import Recorded
from events.vocabulary import PolicyRecorded


class Then(Struct, frozen=True, kw_only=True):
    """What was kept of what agents said when a log was written.

    Attributes:
        sections: Texts of its requests.
        declarations: What its agents said in each.
    """

    sections: Sections = field(default_factory=Sections)
    declarations: Declarations = field(default_factory=Declarations)

    def texts(self, recorded: list[Recorded], *, redacted: bool = False) -> Sections:
        """Return all texts of the requests of a log that follow from what was kept.

        Args:
            recorded: Its events.
            redacted: Whether its contents are made up.
        """
        policies = (each.event.policy for each in recorded if isinstance(each.event, PolicyRecorded))
        if all(policy.revision not in self.declarations.agents for policy in policies):
            return self.sections
        texts = rerun_events("then", recorded, redacted=redacted, kept=self.declarations, keeps_texts=True).today
        texts.update(self.sections)
        return texts


def then_beside(log: str | Path, sections: Sections | None = None) -> Then:
    """Return what was kept beside a log file.

    Args:
        log: The file.
        sections: Texts that were given, in the place of those in ``NAME.sections.json``.

    Raises:
        KeptFileError: A file of sections or of declarations is none, or cannot be read.
    """
    return Then(sections=sections_beside(log) if sections is None else sections, declarations=declarations_beside(log))
