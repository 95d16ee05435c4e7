"""Proof of what a redacted log is: the facts, states and decisions of the original, none of its content.

Both logs are read and compared from the outside: nothing here knows how the second was made. Which name stands for
which is read off the two logs, and must be one for one. Pure.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from chatfold.redacting.facts import OWN, Kind, kind_of_actor, walk
from chatfold.redacting.names import KNOWN
from chatfold.redacting.pairs import ContentPairs
from chatfold.redacting.rules import KINDS, RedactionRules
from chatfold.redacting.states import StatePairs
from chatstate.audit import audit
from events.codec import decode_each
from events.digest import verify_chain
from events.envelope import StoredEvent
from events.errors import DigestMismatch, InvalidValue
from events.given import checked_kind
from events.records import Decision
from events.replay import ReplayStep, replay
from events.state import ChatState
from events.upcasting import REGISTRY
from events.vocabulary import PolicyRecorded, decision_of
from generation.decide import decide_again
from generation.decision import GenerationDecision

_DRAWN: Final[frozenset[Kind]] = frozenset({OWN, "digests"})
"""Kinds whose texts are chatfold's words, or drawn at random: letters in them that are a word are so by chance."""
_MOST: Final = 20
"""Problems that are told of: the first ones say it all."""


class ClearText(Struct, frozen=True, kw_only=True):
    """A text in the facts of a redacted log that is the original's.

    Attributes:
        kind: What it is (``facts.Kind``).
        text: The text.
        version: The first event that has it.
    """

    kind: Kind
    text: str
    version: int


class RedactionCheck(Struct, frozen=True, kw_only=True):
    """What the check of a redacted log came to.

    Attributes:
        problems: What is wrong; nothing where it is what it must be. The first ones only, where there are many.
        decisions: Decisions that were taken again on both logs, and came out the same.
        contents: Contents that were compared.
        unchanged: Those of them that are what they were: blank ones, and JSON without a text or a number.
        clear: Every distinct text that the facts still have, in the order of kinds and texts.
        names: Names that the original has, of the kinds of which the rules rename some.
    """

    problems: tuple[str, ...]
    decisions: int
    contents: int
    unchanged: int
    clear: tuple[ClearText, ...]
    names: Mapping[Kind, frozenset[str]] = {}


class Stored(Protocol):
    """A log as it is compared: as it was read, or was redacted, or any other that has these."""

    @property
    def events(self) -> Sequence[StoredEvent]:
        """All events, as they were stored."""
        ...

    @property
    def blobs(self) -> Mapping[str, bytes]:
        """Large contents by digest (hex), as many as are at hand."""
        ...


def check_redacted(original: Stored, redacted: Stored, rules: RedactionRules) -> RedactionCheck:
    """Compare a redacted log with its original.

    Args:
        original: The log as it was.
        redacted: What was made of it.
        rules: The rules: which fields stay, and what must not be there.

    Raises:
        EventsError: An event of the original cannot be read.
        InvalidValue: An argument is not what it has to be.
    """
    for name, log in (("original", original), ("redacted", redacted)):
        if not (hasattr(log, "events") and hasattr(log, "blobs")):
            raise InvalidValue(f"$.{name}", f"must be a log with events and blobs, not {type(log).__name__}")
    checked_kind(rules, RedactionRules, "$.rules", "what read_redaction_rules gives")
    return _Check(original, redacted, rules).run()


@final
class _Check:
    def __init__(self, original: Stored, redacted: Stored, rules: RedactionRules) -> None:
        self._original: Final = original
        self._redacted: Final = redacted
        self._names: Final = _Pairs()
        self._rules: Final = rules
        self._contents: Final = ContentPairs(rules)
        self._declared: Final[set[str]] = set()
        self._problems: Final[list[str]] = []
        self._decisions = 0

    def run(self) -> RedactionCheck:
        """Compare everything."""
        try:
            verify_chain(self._redacted.events, self._redacted.blobs)
        except DigestMismatch as error:
            self._problems.append(f"its chain does not hold: {error}")
        if len(self._original.events) != len(self._redacted.events):
            self._problems.append("it has another number of events")
        self._chat(getattr(self._original, "chat", None), getattr(self._redacted, "chat", None))
        for old, new in zip(self._original.events, self._redacted.events, strict=False):
            self._facts(old, new)
        if not self._problems:
            self._states()
            self._problems.extend(self._names.in_clear(self._rules, self._declared))
        self._problems.extend(self._names.problems)
        self._problems.extend(self._contents.problems(self._names.kept))
        return RedactionCheck(
            problems=tuple(self._problems[:_MOST]),
            decisions=self._decisions,
            contents=self._contents.count,
            unchanged=self._contents.unchanged,
            clear=self._names.clear(),
            names={kind: self._names.of(kind) for kind in KINDS if self._rules.rename.get(kind)},
        )

    def _chat(self, old: object, new: object) -> None:
        """Look at the id that the log is known by, where it has one: that of an imported chat is not in its facts."""
        if isinstance(new, str):
            self._names.at = 1
            self._look("chats", new)
            if new == old:
                self._names.learn("chats", old, new)

    def _facts(self, old: StoredEvent, new: StoredEvent) -> None:
        """Compare envelopes and facts, and learn which name stands for which."""
        version, was, now = old.envelope.version, old.envelope, new.envelope
        self._names.at = version
        for kind, one, other in (
            ("commands", was.command, now.command),
            (kind_of_actor(was.actor), was.actor.id or "", now.actor.id or ""),
        ):
            self._names.learn(kind, one, other)
            self._look(kind, other)
        if replace(was, actor=replace(was.actor, id=now.actor.id), command=now.command) != now:
            self._problems.append(f"version {version}: its envelope is another")
            return
        cls = REGISTRY.find(was.type, was.schema, version)
        facts = msgspec.json.decode(old.facts)
        seen, shown = _Texts(), _Texts()
        walk(cls, facts, seen)
        walk(cls, msgspec.json.decode(new.facts), shown)
        for (kind, one), (_, other) in zip(seen.found, shown.found, strict=False):
            self._names.learn(kind, one, other)
            self._look(kind, other)
        expected = walk(cls, facts, self._names)
        if new.facts != (old.facts if expected == facts else msgspec.json.encode(expected)):
            self._problems.append(f"version {version}: its facts are other ones, and not by a name alone")

    def _look(self, kind: Kind, name: str) -> None:
        """Look for what must not be in a name of the redacted log."""
        if kind not in _DRAWN:
            mapped = f', or {kind} = "map" under [names],' if self._rules.keeps(kind) else ""
            advice = f": another name for it under [rename.{kind}]{mapped} helps"
            self._contents.never(name, f"a name ({kind})", self._names.at, advice)

    def _states(self) -> None:
        """Fold both, and compare states, decisions and contents after each event."""
        was = list(decode_each(self._original.events, blobs=self._original.blobs))
        now = list(decode_each(self._redacted.events, blobs=self._redacted.blobs))
        states = StatePairs(self._names)
        for one, other in zip(replay(was), replay(now), strict=True):
            version = one.recorded.version
            self._contents.compare(version, one.recorded.event, other.recorded.event)
            if isinstance(one.recorded.event, PolicyRecorded):
                self._declared.update(tool.name for tool in one.recorded.event.policy.tools)
            if not states.same(one.after.control, other.after.control):
                self._problems.append(f"version {version}: it folds to another state")
            self._decide(one, other)
        # Where it tells of something, not what: what it says has names in it.
        if [each.version for each in audit(was)] != [each.version for each in audit(now)]:
            self._problems.append("the audit says something else of it")

    def _decide(self, one: ReplayStep, other: ReplayStep) -> None:
        then = decision_of(one.recorded.event)
        if then is None:
            return
        now = decision_of(other.recorded.event) or then
        before, after = _again(then, one.before), _again(now, other.before)
        self._decisions += 1
        if before is not None:
            record = self._mapped(Decision, msgspec.to_builtins(before.record))
            before = replace(before, record=msgspec.convert(record, Decision))
        if before != after:
            self._problems.append(f"version {one.recorded.version}: something else would be decided")

    def _mapped(self, cls: type[Struct], facts: Any) -> Any:
        return walk(cls, facts, self._names)


def _again(decision: Decision, before: ChatState) -> GenerationDecision | None:
    """Return what is decided today; None where the log does not say under which policy."""
    policy = before.need_transcript("decide").policies.get(before.control.policy)
    return None if policy is None else decide_again(decision, before, policy)


@final
class _Texts:
    """Collects the texts of facts, in their order."""

    def __init__(self) -> None:
        self.found: Final[list[tuple[Kind, str]]] = []

    def text(self, kind: Kind, text: str) -> str:
        self.found.append((kind, text))
        return text

    def content(self, reference: Any, _form: object) -> Any:
        return reference


@final
class _Pairs:
    """Which name stands for which, as two logs have it."""

    def __init__(self) -> None:
        self.at = 0
        self.problems: Final[list[str]] = []
        self._new: Final[dict[tuple[Kind, str], str]] = {}
        self._old: Final[dict[tuple[Kind, str], str]] = {}
        self._first: Final[dict[tuple[Kind, str], int]] = {}

    def learn(self, kind: Kind, old: str, new: str) -> None:
        """Take a pair: each name has one that stands for it, which stands for no other."""
        if self._new.setdefault((kind, old), new) != new:
            self.problems.append(f"version {self.at}: a name ({kind}) has two that stand for it, one of them {new!r}")
        if self._old.setdefault((kind, new), old) != old:
            self.problems.append(f"version {self.at}: {new!r} ({kind}) stands for two names")
        self._first.setdefault((kind, old), self.at)

    def of(self, kind: Kind) -> frozenset[str]:
        """Return the names of a kind that were there."""
        return frozenset(old for known, old in self._new if known == kind)

    def text(self, kind: Kind, text: str) -> str:
        """Return what stands for a text."""
        return self._new.get((kind, text), text)

    def content(self, reference: Any, _form: object) -> Any:
        """Leave a content as it is."""
        return reference

    def in_clear(self, rules: RedactionRules, declared: Container[str]) -> Iterator[str]:
        """Yield what is wrong with names that have no other one, or another than the rules give."""
        for (kind, old), new in self._new.items():
            given = rules.rename.get(kind, {}).get(old)
            if kind != OWN and given is not None and new != given:
                yield f"version {self._first[kind, old]}: a name ({kind}) has another than the rules give it, {new!r}"
            stays = rules.keeps(kind) and (kind != "tools" or old in declared)
            if old and old == new != given and kind != OWN and not stays and old not in KNOWN.get(kind, ()):
                yield f"version {self._first[kind, old]}: a name ({kind}) is in clear that should have another"

    @property
    def kept(self) -> frozenset[str]:
        """The names that stay."""
        return frozenset(old for (_, old), new in self._new.items() if old == new)

    def clear(self) -> tuple[ClearText, ...]:
        """Return the names that stay, chatfold's own last."""
        stay = [(kind, old) for (kind, old), new in self._new.items() if old == new and old]
        ordered = sorted(stay, key=lambda each: (each[0] == OWN, *each))
        return tuple(ClearText(kind=kind, text=text, version=self._first[kind, text]) for kind, text in ordered)
