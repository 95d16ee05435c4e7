"""Snapshots of chats, as a project keeps them: one file for each log, changes in words, unused ones reported."""

from pathlib import Path
from typing import Final

import pytest

from tests.chatfold.plugin.conftest import Run
from tests.chatfold.plugin.test_plugin import write_log

TEST: Final = """
import pytest

@pytest.mark.chatfold_logs("logs")
def test_it(chatfold_log, chatfold_snapshot):
    assert chatfold_log == chatfold_snapshot
"""


@pytest.fixture
def kept(project: pytest.Pytester, run: Run) -> Path:
    """The folder of snapshots of two logs that were just taken."""
    project.makeconftest("")
    write_log(project.path / "logs" / "one.jsonl", "Hi.")
    write_log(project.path / "logs" / "two.jsonl", "Ho.")
    project.makepyfile(TEST)
    taken = run("--snapshot-update", syrupy=True)
    taken.assert_outcomes(passed=2)
    return project.path / "__snapshots__"


def test_one_file_for_each_log(kept: Path, run: Run) -> None:
    files = sorted(kept.rglob("*.chat"))
    assert [file.name for file in files] == [f"test_it[logs.{name}].chat" for name in ("one", "two")]
    assert "      [5.0] assistant\n      text | Hi.\n" in files[0].read_text(encoding="utf-8")
    for parallel in ((), ("-n", "2")):
        run(*parallel, syrupy=True).assert_outcomes(passed=2)


def test_what_is_said_in_a_chat_is_not_run_as_a_doctest(project: pytest.Pytester, run: Run) -> None:
    project.makeconftest("")
    write_log(project.path / "logs" / "one.jsonl", ">>> open('ran', 'w').close()\n\n")
    project.makepyfile(TEST)
    run("--snapshot-update", syrupy=True).assert_outcomes(passed=1)
    (snapshot,) = project.path.rglob("*.chat")
    assert ">>> open" in snapshot.read_text(encoding="utf-8")
    assert snapshot.name.startswith("test_")
    run(syrupy=True).assert_outcomes(passed=1)
    run("--doctest-glob=*.chat", "__snapshots__", syrupy=True).assert_outcomes()
    assert not (project.path / "ran").exists()


def test_a_change_is_told_in_words(kept: Path, run: Run) -> None:
    file = min(kept.rglob("*.chat"))
    text = file.read_text(encoding="utf-8").replace("D6 finish(complete)", "D10 compact(automatic)")
    file.write_text(text, encoding="utf-8")
    result = run("-vv", syrupy=True)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*decision at version 6 changed from D10 compact(automatic) to D6 finish(complete)*", "*-      D10 compact*"]
    )


def test_an_unused_one_is_reported(kept: Path, project: pytest.Pytester, run: Run) -> None:
    (project.path / "logs" / "two.jsonl").unlink()
    result = run(syrupy=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*1 snapshot unused*"])
    assert len(list(kept.rglob("*.chat"))) == 2


def test_what_is_kept_can_be_chosen(project: pytest.Pytester, run: Run) -> None:
    project.makeconftest("")
    write_log(project.path / "logs" / "one.jsonl", "Hi.")
    project.makepyfile(
        """
        import pytest
        from chatfold.testing.snapshots import ChatSnapshotExtension

        @pytest.mark.chatfold_logs("logs")
        def test_it(chatfold_log, snapshot):
            assert chatfold_log == snapshot.use_extension(ChatSnapshotExtension.keeping("usage"))
        """
    )
    run("--snapshot-update", syrupy=True).assert_outcomes(passed=1)
    assert "tokens input=" in next(project.path.rglob("*.chat")).read_text(encoding="utf-8")


def test_without_syrupy_it_says_what_to_install(project: pytest.Pytester, run: Run) -> None:
    write_log(project.path / "logs" / "one.jsonl", "Hi.")
    project.makepyfile(TEST)
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*chatfold_snapshot needs syrupy: pip install 'chatfold?syrupy?'*"])


def test_what_is_no_chat_fails_its_test_in_a_line(project: pytest.Pytester, run: Run) -> None:
    project.makeconftest("")
    project.makepyfile(
        """
        from syrupy.filters import props

        def test_number(chatfold_snapshot):
            assert 3 == chatfold_snapshot

        def test_events(chatfold_snapshot):
            assert chatfold_snapshot == []

        def test_file(chatfold_snapshot):
            assert "nowhere.jsonl" == chatfold_snapshot

        def test_excluding(chatfold_snapshot):
            assert [] == chatfold_snapshot(exclude=props("id"))
        """
    )
    result = run("-q", syrupy=True)
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "nothing to compare with a snapshot of a chat: $.log: must be a log: *events(chat)`, not int",
            "nothing to compare with a snapshot of a chat: $.log: the log has no event*",
            "nothing to compare with a snapshot of a chat: there is no file nowhere.jsonl *",
            "a snapshot of a chat takes no exclude=: keeping() chooses what is in it",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_where_the_plug_in_of_syrupy_is_off_or_hidden_it_says_so(project: pytest.Pytester, run: Run) -> None:
    project.makeconftest("")
    project.makepyfile("def test_it(chatfold_snapshot):\n    pass\n")
    run().stdout.fnmatch_lines(["chatfold_snapshot needs syrupy's plug-in, which is *take -p no:syrupy away*"])
    project.makeconftest("import pytest\n\n@pytest.fixture\ndef snapshot():\n    return 3\n")
    hidden = run(syrupy=True)
    hidden.assert_outcomes(errors=1)
    hidden.stdout.fnmatch_lines(["chatfold_snapshot needs syrupy's fixture snapshot; *hides it and gives int"])
