"""The corpus gate: the golden corpus passes it, and whatever is wrong with a log is found and named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from msgspec import json as msgjson
from msgspec.structs import replace

from chatfold import Agent, Limits
from chatfold.corpus.adding import LogThere, add_log, refold
from chatfold.corpus.coverage import ENDS, NOTHING, coverage_of, possible
from chatfold.corpus.expected import ExpectationError, FoldCheck, FoldDiffers, expectations, requests_expected
from chatfold.corpus.gate import FOLD, check_corpus, check_log, logs_of
from chatfold.corpus.names import UnfitName
from chatfold.corpus.picture import coverage_svg
from chatfold.corpus.unwritten import KINDS, SAID, UNWRITTEN
from chatfold.replaying.logs import SourceNotFound
from chatfold.rerunning.declarations import DECLARATIONS
from chatstate.table import TABLE
from events.control import Control
from events.reasons import Reason
from events.replay import replay
from events.transcript import Transcript, empty_transcript
from events.vocabulary import EVENT_TYPES
from generation.errors import RECORDED_KINDS
from tests.corpus.kit import assistant
from tests.corpus.make import FOLDER, made
from tests.meta.source import ROOT


def test_the_golden_corpus_passes_the_gate() -> None:
    checked = list(check_corpus(FOLDER, jobs=1))
    assert [str(each.finding) for each in checked if each.finding is not None] == []
    assert [each.log for each in checked if each.unsupported is not None] == []
    assert len(checked) >= 120
    total = NOTHING
    for source in logs_of(FOLDER):
        total += coverage_of(source.read().recorded())
    assert {kind: total.missing(kind) for kind in KINDS} == {kind: [] for kind in KINDS}
    seen = {kind: sorted(set(total.of(kind)) & set(names)) for kind, names in UNWRITTEN.items()}
    assert seen == {kind: [] for kind in UNWRITTEN}, "it is written after all"


def test_what_no_engine_writes_is_in_the_tables_and_has_its_reason() -> None:
    for kind, names in UNWRITTEN.items():
        for name, why in names.items():
            assert name not in possible()[kind]
            assert why
    transitions = {f"{x} {trigger} {to}" for x, row in TABLE.items() for trigger in row for to in row[trigger].outcomes}
    assert set(UNWRITTEN["transition"]) <= transitions
    assert set(UNWRITTEN["event"]) <= set(EVENT_TYPES)
    assert set(UNWRITTEN["reason"]) <= set(Reason)
    fields = {f"{cls.__name__}.{name}" for cls in (Control, *EVENT_TYPES.values()) for name in cls.__struct_fields__}
    assert set(UNWRITTEN["field"]) <= fields
    assert set(UNWRITTEN["error"]) <= set(RECORDED_KINDS)
    assert UNWRITTEN["value"].keys() == {"ToolPolicy.runner=provider"}
    assert tuple(SAID) == KINDS
    assert set(ENDS) <= set(EVENT_TYPES)


def test_a_corpus_is_made_of_the_same_bytes_again(tmp_path: Path) -> None:
    """In two processes that hash differently, at once: neither time nor chance is in it."""
    making = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.corpus.make", str(tmp_path / seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    assert [len(process.communicate()[0].splitlines()) for process in making] == [len(list(made()))] * 2
    one, other = ({file.name: file.read_bytes() for file in (tmp_path / seed).iterdir()} for seed in ("1", "2"))
    assert one == other


def test_each_log_has_its_expectations_and_its_note() -> None:
    files = {file.name for file in FOLDER.iterdir()}
    names = {name for name, _, _ in made()}
    assert files == {DECLARATIONS, *(f"{name}{suffix}" for name in names for suffix in (".jsonl", FOLD, ".md"))}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A corpus of one log."""
    for file in (f"max_steps{FOLD}", "max_steps.jsonl", DECLARATIONS):
        shutil.copy(FOLDER / file, tmp_path)
    return tmp_path


def write(file: Path, old: str, new: str, times: int = 1) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, times), encoding="utf-8")


DAMAGE: Final[dict[str, tuple[Callable[[Path], object], str, str]]] = {
    "altered": (lambda corpus: write(corpus / "max_steps.jsonl", "Count.", "Court."), "read", "not as it was written"),
    "no log": (lambda corpus: (corpus / "max_steps.jsonl").write_text("nothing\n"), "read", "line 1: no header"),
    "another state": (
        lambda corpus: write(corpus / f"max_steps{FOLD}", '"steps":2', '"steps":3'),
        "fold",
        "it folds otherwise: $.indexes.steps: 3 -> 2",
    ),
    "another part of the transcript": (
        lambda corpus: write(corpus / f"max_steps{FOLD}", '"are":[{"id":"1.0"', '"are":[{"id":"1.1"'),
        "fold",
        "it folds otherwise: $.transcript.messages[0].id: '1.1' -> '1.0'",
    ),
    "another text": (
        lambda corpus: write(corpus / f"max_steps{FOLD}", '"text":"6 B, ', '"text":"9 B, '),
        "fold",
        "$.transcript.messages[0].message.parts[0].text: '9 B, ",
    ),
    "other system texts": (
        lambda corpus: write(corpus / DECLARATIONS, "You help", "Be", -1),
        "rerun",
        "system: another text in 4 requests, first at version 5",
    ),
    "other tools": (
        lambda corpus: write(corpus / DECLARATIONS, "Add two", "Add", -1),
        "rerun",
        "tools: another text in 4 requests, first at version 5",
    ),
    "no declarations at all": (
        lambda corpus: (corpus / DECLARATIONS).write_text("nothing"),
        "rerun",
        "is no file of declarations",
    ),
    "declarations of another form": (
        lambda corpus: (corpus / DECLARATIONS).write_text('{"chatfold_declarations": 2}'),
        "rerun",
        "form 2; 1 is known here",
    ),
    "no expectations": (
        lambda corpus: (corpus / f"max_steps{FOLD}").unlink(),
        "fold",
        "`chatfold corpus refold` writes",
    ),
    "too many of them": (
        lambda corpus: (corpus / f"max_steps{FOLD}").write_bytes(
            (corpus / f"max_steps{FOLD}").read_bytes() + b'{"version":99,"changed":{}}\n'
        ),
        "fold",
        "there are lines beyond the end of the log",
    ),
    "too few of them": (
        lambda corpus: (corpus / f"max_steps{FOLD}").write_bytes(
            b"".join((corpus / f"max_steps{FOLD}").read_bytes().splitlines(keepends=True)[:3])
        ),
        "fold",
        "version 3 is missing",
    ),
    "none at all": (lambda corpus: (corpus / f"max_steps{FOLD}").write_text("{}\n"), "fold", "is not that of fold"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_wrong_is_found(corpus: Path, damage: str) -> None:
    do, check, said = DAMAGE[damage]
    do(corpus)
    (checked,) = check_corpus(corpus)
    assert checked.finding is not None
    assert (checked.finding.check, checked.finding.log) == (check, str(corpus / "max_steps.jsonl"))
    assert said in checked.finding.problem


def test_only_the_checks_that_are_wanted_are_made(corpus: Path) -> None:
    (corpus / f"max_steps{FOLD}").unlink()
    (source,) = logs_of(corpus)
    assert check_log(source, ("decide", "rerun")).finding is None


def test_a_state_is_compared_by_the_fields_that_were_known_then() -> None:
    (source,) = (each for each in logs_of(FOLDER) if each.where.endswith("/answer.jsonl"))
    log = source.read().recorded()
    lines = list(expectations(log))
    header = msgjson.decode(lines[0])
    header["control"].remove("labels")  # as if a release had not had them
    older = [msgjson.encode(header)]
    for line in lines[1:]:
        entry = msgjson.decode(line)
        entry["changed"].pop("labels", None)
        older.append(msgjson.encode(entry))
    check = FoldCheck(older)
    for step in replay(log):
        check.take(step.recorded.version, step.after)
    with pytest.raises(ExpectationError, match="is missing"):
        check.take(99, step.after)


def test_a_difference_names_version_and_field() -> None:
    (source,) = (each for each in logs_of(FOLDER) if each.where.endswith("/answer.jsonl"))
    log = source.read().recorded()
    lines = list(expectations(log))
    entry = msgjson.decode(lines[4])
    entry["changed"]["epoch"] = 7
    check = FoldCheck([*lines[:4], msgjson.encode(entry)])
    steps = list(replay(log))
    for step in steps[:3]:
        check.take(step.recorded.version, step.after)
    with pytest.raises(FoldDiffers, match=r"version 4 folds otherwise: \$\.epoch: 7 -> 1"):
        check.take(4, steps[3].after)


@pytest.mark.parametrize("name", ["titled", "approval", "compact_asked", "edits", "erased", "queue"])
def test_a_transcript_is_compared_part_by_part(name: str) -> None:
    """What is written down of each part is what is lost where it is not folded."""
    (source,) = (each for each in logs_of(FOLDER) if each.where.endswith(f"/{name}.jsonl"))
    log = source.read().recorded()
    steps, lines = list(replay(log)), list(expectations(log))
    lacking: dict[str, int] = {}
    for at, step in enumerate(steps):
        for part in Transcript.__struct_fields__:
            if getattr(step.after.transcript, part) and part not in lacking and part != "messages":
                lacking[part] = at
    assert lacking.keys() >= {"policies"}
    for part, at in lacking.items():
        empty = getattr(empty_transcript(), part)
        check = FoldCheck(lines)
        for step in steps[:at]:
            check.take(step.recorded.version, step.after)
        after = steps[at].after
        lost = replace(after, transcript=replace(after.need_transcript("lose it"), **{part: empty}))
        with pytest.raises(FoldDiffers, match=rf"version {at + 1} folds otherwise: \$\.transcript\.{part}"):
            check.take(at + 1, lost)


def test_expectations_of_an_earlier_form_are_of_control_alone() -> None:
    (source,) = (each for each in logs_of(FOLDER) if each.where.endswith("/titled.jsonl"))
    log = source.read().recorded()
    earlier = []
    for line in expectations(log):
        entry = msgjson.decode(line)
        earlier.append(msgjson.encode({name: said for name, said in entry.items() if name not in _LATER}))
    check = FoldCheck(earlier)
    assert check.requests == {"messages"}
    for step in replay(log):
        check.take(step.recorded.version, replace(step.after, transcript=empty_transcript()))
    check.end()


_LATER: Final = ("transcript", "requests")


def test_the_corpus_holds_its_requests_to_all_that_they_say() -> None:
    """But for logs whose contents were erased, and those of agents that changed: what they said then is not known."""
    said = [requests_expected(file) for file in sorted(FOLDER.glob(f"*{FOLD}"))]
    whole = [each for each in said if each >= {"system", "tools", "messages", "options"}]
    assert len(whole) >= 95
    assert sum("instruction" in each for each in said) >= 18


def test_what_agents_say_is_kept_where_they_are_named(tmp_path: Path) -> None:
    """By what they say: their limits may be others today."""
    log = (FOLDER / "max_steps.jsonl").read_bytes()
    others = Agent(name="assistant", model="scripted", system="Something else.")
    named = [others, assistant(limits=Limits(max_steps=5))]
    for folder, agents, strangers in (("named", named, ()), ("unnamed", [others], ("assistant",))):
        (tmp_path / folder).mkdir()
        assert add_log(log, tmp_path / folder, "one", "A note.", agents).strangers == strangers
    known, unknown = (requests_expected(tmp_path / folder / f"one{FOLD}") for folder in ("named", "unnamed"))
    assert known == {"system", "tools", "messages", "options"}
    assert unknown == {"messages", "options"}
    assert not (tmp_path / "unnamed" / DECLARATIONS).exists()


def test_expectations_are_written_anew(corpus: Path) -> None:
    (source,) = logs_of(corpus)
    before = (corpus / f"max_steps{FOLD}").read_bytes()
    assert not refold(source)
    (corpus / f"max_steps{FOLD}").write_text("{}\n")
    assert refold(source)
    assert (corpus / f"max_steps{FOLD}").read_bytes() == before
    (corpus / f"max_steps{FOLD}").unlink()
    assert refold(source)


def test_logs_of_a_corpus_stay_as_they_are(tmp_path: Path) -> None:
    log = (FOLDER / "answer.jsonl").read_bytes()
    file = add_log(log, tmp_path, "mine", "A note.").file
    assert file.read_bytes() == log
    assert (tmp_path / "mine.md").read_text(encoding="utf-8") == "# mine\n\nA note.\n"
    with pytest.raises(LogThere, match="there is a log mine already"):
        add_log(log, tmp_path, "mine", "Another.")
    (checked,) = check_corpus(tmp_path)
    assert checked.finding is None


@pytest.mark.parametrize("name", ["", " ", ".", "..", "../evil", "a/b", "a\\b", "a\nb", "x.jsonl", "x.fold", "x.md"])
def test_the_name_of_a_log_is_that_of_a_file_in_the_corpus(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    with pytest.raises(UnfitName, match="a log of a corpus cannot be called"):
        add_log((FOLDER / "answer.jsonl").read_bytes(), folder, name, "A note.")
    assert [*tmp_path.rglob("*")] == [folder]


@pytest.mark.parametrize("where", ["nowhere", "."])
def test_a_corpus_has_logs(tmp_path: Path, where: str) -> None:
    with pytest.raises(SourceNotFound):
        logs_of(tmp_path / where)


def test_coverage_tells_what_is_never_seen() -> None:
    (source,) = (each for each in logs_of(FOLDER) if each.where.endswith("/answer.jsonl"))
    coverage = coverage_of(source.read().recorded())
    assert coverage.of("rule") == {"D11": 1, "D6": 1}
    assert "D6" not in coverage.missing("rule")
    assert "D7" in coverage.missing("rule")
    assert (coverage + coverage).of("rule") == {"D11": 2, "D6": 2}
    assert NOTHING.missing("event") == list(possible()["event"])
    assert coverage.of("end") == {"generate step_committed": 1}
    assert "tools acquired" in coverage.missing("end")
    assert coverage.missing("error") == list(possible()["error"])
    assert coverage.of("part") == {"text": 2, "reasoning": 1}
    assert "Released.reason=fault" in coverage.missing("value")
    assert coverage.of("value")["Step.finish_reason=stop"] == 1


def test_the_picture_is_svg_without_anything_from_elsewhere() -> None:
    (source,) = (each for each in logs_of(FOLDER) if each.where.endswith("/answer.jsonl"))
    svg = coverage_svg(coverage_of(source.read().recorded()))
    root = ET.fromstring(svg)  # noqa: S314 -- it is ours
    cells = [cell.get("class") for cell in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert cells.count("taken") >= 5
    assert cells.count("never") > 100
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
