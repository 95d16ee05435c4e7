"""One thing, one name: what the code calls by a name is explained in the glossary or on a page made from the code.

And what users can import, call, or catch is shown on some page.
"""

import re
from typing import Final, get_args

import pytest

import chatfold
from chatfold.engine import Engine
from chatstate.classify import X
from chatstate.errors import Refusal
from chatstate.table import TABLE
from events.control import CompactionPhase
from events.envelope import Status
from events.messages import BoundaryKind, Visibility
from events.parts import CrashPolicy, OnExpiry, Part, Runner
from events.reasons import Reason
from events.records import ActionKind, FinishCause
from events.vocabulary import EVENT_TYPES
from generation.decide import RULES
from tests.meta.source import ROOT

GLOSSARY: Final = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
FROM_CODE: Final = [
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("events.md", "state-machine.md", "decision-rules.md")
]
EXPLAINED: Final = "\n".join([GLOSSARY, *FROM_CODE])
PAGES: Final = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "docs").glob("*.md"))
EMBEDDING: Final = (ROOT / "docs" / "embedding.md").read_text(encoding="utf-8")


def names() -> dict[str, set[str]]:
    """What the code calls by a name, by kind."""
    literals = {
        "status": Status,
        "boundary": BoundaryKind,
        "visibility": Visibility,
        "runner": Runner,
        "crash policy": CrashPolicy,
        "action": ActionKind,
        "finish cause": FinishCause,
        "on expiry": OnExpiry,
        "compaction": CompactionPhase,
    }
    return {kind: set(get_args(values)) for kind, values in literals.items()} | {
        "execution state": {str(x) for x in X},
        "trigger": {trigger for row in TABLE.values() for trigger in row},
        "event type": set(EVENT_TYPES),
        "reason": {reason.value for reason in Reason},
        "decision rule": {rule.id for rule in RULES},
        "decision": {rule.action for rule in RULES},
        "part": {str(part.__struct_config__.tag) for part in get_args(Part)},
    }


def explains(text: str, name: str) -> bool:
    """Whether a page has the name as a word; in prose a blank may stand for an underscore."""
    words = re.escape(name).replace("_", "[ _]").replace("\\-", "[ -]")
    return re.search(rf"(?<!\w){words}(?!\w)", text) is not None


@pytest.mark.parametrize("kind", sorted(names()))
def test_what_the_code_names_is_explained(kind: str) -> None:
    assert names()[kind]
    missing = sorted(name for name in names()[kind] if not explains(EXPLAINED, name))
    assert not missing, f"neither the glossary nor a page made from the code explains the {kind} {missing}"


def test_no_term_is_explained_twice() -> None:
    terms = [
        term.strip()
        for line in GLOSSARY.splitlines()
        if line.startswith("| ") and not line.startswith(("| term", "| ---"))
        for term in line.split("|")[1].split(",")
    ]
    assert len(terms) > 100
    assert sorted({term for term in terms if terms.count(term) > 1}) == []


def test_every_public_name_is_shown_on_a_page() -> None:
    missing = [name for name in chatfold.__all__ if name != "__version__" and not explains(PAGES, name)]
    assert not missing, f"no page of docs/ shows {missing}"


def test_every_method_of_the_engine_is_shown() -> None:
    methods = [name for name in dir(Engine) if not name.startswith("_") and callable(getattr(Engine, name))]
    assert len(methods) > 20
    missing = [name for name in methods if not explains(EMBEDDING, name)]
    assert not missing, f"docs/embedding.md does not show Engine.{missing}"


def test_every_refusal_says_what_to_do() -> None:
    codes = {refusal.code for refusal in Refusal.__subclasses__()}
    assert len(codes) > 10
    missing = sorted(code for code in codes if f"`{code}`" not in EMBEDDING)
    assert not missing, f"docs/embedding.md does not say what to do on {missing}"
