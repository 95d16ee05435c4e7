"""`corpus` as it is typed: what a log is called there."""

from pathlib import Path

import pytest

from tests.chatfold.cli.kit import Cli
from tests.corpus.make import FOLDER

LOG = str(FOLDER / "answer.jsonl")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("../evil", "no path"),
        ("a/b", "no path"),
        ("x.jsonl", ".jsonl is added to it"),
        ("", "it is empty"),
        ("..", "hidden"),
    ],
)
def test_a_name_that_no_file_of_the_corpus_can_have_is_a_usage_error(cli: Cli, name: str, says: str) -> None:
    Path("corpus").mkdir()
    done = cli.run("corpus", "add", LOG, "corpus", "--note", "n", "--name", name)
    assert done.code == 2
    assert says in done.err
    assert done.err.rstrip().endswith("give another --name")
    assert not [*Path().glob("evil*"), *Path("corpus").iterdir()]


def test_a_log_from_stdin_needs_a_name(cli: Cli) -> None:
    Path("corpus").mkdir()
    log = Path(LOG).read_bytes()
    done = cli.run("corpus", "add", "-", "corpus", "--note", "n", stdin=log)
    assert (done.code, done.err) == (2, "chatfold: what comes from stdin has no name: give --name\n")
    cli.ok("corpus", "add", "-", "corpus", "--note", "n", "--name", "v1.2", stdin=log)
    assert {file.name for file in Path("corpus").iterdir()} == {"v1.2.jsonl", "v1.2.fold", "v1.2.md"}


def test_a_chat_is_called_by_its_whole_id(cli: Cli) -> None:
    Path("corpus").mkdir()
    cli.ok("import", LOG, "--as", "v1.2")
    cli.ok("corpus", "add", "v1.2", "corpus", "--note", "n")
    assert Path("corpus/v1.2.jsonl").is_file()
