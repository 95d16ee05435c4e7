"""Fixtures and marker of the plug-in, with and without xdist, where only chatfold itself is installed."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psycopg
import pytest

from chatfold import Agent, Engine
from chatfold.testing import ScriptedProvider
from tests.chatfold.plugin.conftest import Run

PARALLEL: Final = [pytest.param((), id="alone"), pytest.param(("-n", "2"), id="xdist")]


def write_log(file: Path, *said: str) -> None:
    """Write the log of a chat in which the model said so."""

    async def talk() -> bytes:
        model = ScriptedProvider(list(said))
        async with Engine("memory://", [Agent(name="a", model="scripted")], providers={"scripted": model}) as engine:
            chat = (await engine.create_chat("a", "Hello.")).chat
            await engine.settled(chat)
            return await engine.export_log(chat)

    file.parent.mkdir(exist_ok=True)
    file.write_bytes(asyncio.run(talk()))


def drifting(file: Path) -> None:
    """Let a log say that another rule held than the one that does."""
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"rule":"D11"', '"rule":"D10"'), encoding="utf-8")


@pytest.mark.parametrize("parallel", PARALLEL)
def test_a_test_runs_for_each_log(project: pytest.Pytester, run: Run, parallel: tuple[str, ...]) -> None:
    write_log(project.path / "logs" / "one.jsonl", "Hi.")
    write_log(project.path / "logs" / "two.jsonl", "Hi.")
    project.makepyfile(
        """
        import pytest

        from chatfold.testing import assert_replays, assert_valid_prompts

        @pytest.mark.chatfold_logs("logs")
        def test_it(chatfold_log):
            assert_replays(chatfold_log)
            assert_valid_prompts(chatfold_log)
        """
    )
    result = run("-v", *parallel)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines_random(["*test_it?logs.one?*", "*test_it?logs.two?*"])


def test_a_log_that_was_altered_fails_its_test(project: pytest.Pytester, run: Run) -> None:
    write_log(project.path / "logs" / "one.jsonl", "Hi.")
    drifting(project.path / "logs" / "one.jsonl")
    project.makepyfile(
        """
        import pytest

        from chatfold.testing import assert_replays

        @pytest.mark.chatfold_logs("logs/one.jsonl")
        def test_it(chatfold_log):
            assert_replays(chatfold_log)
        """
    )
    result = run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*DigestMismatch*"])


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ('@pytest.mark.chatfold_logs("nowhere")', "*there is no file or folder *nowhere*"),
        ('@pytest.mark.chatfold_logs("empty/*.jsonl")', "*no file is named like *empty/?.jsonl*"),
        ("@pytest.mark.chatfold_logs(5)", "*chatfold_logs takes files, folders and patterns, not 5*"),
        ('@pytest.mark.chatfold_logs("logs", at=3)', "*takes files, folders and patterns, and no at=*"),
        ("", "test_it: chatfold_log needs a mark on the test that says which: @pytest.mark.chatfold_logs('logs')"),
    ],
)
def test_a_mark_without_logs_is_an_error(project: pytest.Pytester, run: Run, mark: str, said: str) -> None:
    beside = "def test_beside():\n    pass\n"
    project.makepyfile(f"import pytest\n\n{mark}\ndef test_it(chatfold_log):\n    pass\n\n{beside}")
    result = run()
    result.assert_outcomes(passed=1, errors=1)
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines([said])


def test_a_marked_test_that_takes_no_log_is_an_error(project: pytest.Pytester, run: Run) -> None:
    write_log(project.path / "logs" / "one.jsonl", "Hi.")
    project.makepyfile(
        test_module="""
        import pytest

        pytestmark = pytest.mark.chatfold_logs("logs")

        def test_beside():
            pass

        def test_of_each(chatfold_log):
            pass
        """,
        test_function="""
        import pytest

        @pytest.mark.chatfold_logs("logs")
        def test_it():
            pass
        """,
    )
    result = run()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["test_it: marked chatfold_logs, and does not take the fixture chatfold_log: *"])


def test_an_error_of_a_chat_is_told_where_a_claim_fails(project: pytest.Pytester, run: Run) -> None:
    project.makepyfile(
        """
        import asyncio
        from chatfold import Agent

        def test_it(chatfold_provider):
            from chatfold import Engine

            async def talk():
                models = {"scripted": chatfold_provider(["Hi."])}
                async with Engine("memory://", [Agent(name="a", model="scripted")], providers=models) as engine:
                    chat = (await engine.create_chat("a", "Hello.")).chat
                    await engine.settled(chat)
                    await engine.send_message(chat, "Again.")
                    return (await engine.settled(chat)).control.last_error
            assert asyncio.run(talk()) is None
        """
    )
    result = run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *the error says: The script has 1 turn, and none is left for this call.",
            "the model 'scripted' was called 2 times, its script has 1 turn",
        ]
    )


def test_a_server_that_is_none_is_refused_before_tests_run(project: pytest.Pytester, run: Run) -> None:
    result = run("--chatfold-postgres", "sqlite:///a.db")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --chatfold-postgres takes the URL of a server, such as postgresql://*"])


@pytest.mark.parametrize("parallel", PARALLEL)
def test_an_engine_runs_over_each_store(project: pytest.Pytester, run: Run, parallel: tuple[str, ...]) -> None:
    project.makepyfile(
        """
        import asyncio

        from chatfold import Agent
        from chatfold.testing import assert_replays

        def test_it(chatfold_engine):
            async def talk():
                async with chatfold_engine([Agent(name="a", model="scripted")], script=["Hi."]) as engine:
                    chat = (await engine.create_chat("a", "Hello.")).chat
                    assert (await engine.settled(chat)).messages[-1].message.text == "Hi."
                    assert_replays(await engine.events(chat))
            asyncio.run(talk())
        """
    )
    result = run("-v", *parallel)
    result.assert_outcomes(passed=2)
    for kind in ("memory", "sqlite"):
        result.stdout.fnmatch_lines([f"*test_it?{kind}?*"])


def test_with_a_server_it_runs_over_postgresql_too(
    project: pytest.Pytester, run: Run, postgres_database: Callable[[], str]
) -> None:
    project.makeconftest("")  # psycopg is what this needs
    project.makepyfile(
        """
        import asyncio
        import psycopg
        from chatfold import Agent

        def test_it(chatfold_engine, pytestconfig):
            async def talk():
                async with chatfold_engine([Agent(name="a", model="scripted")], script=["Hi."]) as engine:
                    chat = (await engine.create_chat("a", "Hello.")).chat
                    await engine.settled(chat)
            asyncio.run(talk())
            if chatfold_engine.store.startswith("postgres"):
                assert chatfold_engine.store != pytestconfig.getoption("--chatfold-postgres")
        """
    )
    server = postgres_database()
    before = databases(server)
    result = run("-v", "--chatfold-postgres", f"{server}{'&' if '?' in server else '?'}pool_size=2")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*test_it?postgres?*PASSED*"])
    assert {name for name in databases(server) if name.startswith("chatfold_")} <= before


def databases(server: str) -> set[str]:
    with psycopg.connect(server) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database")}


def test_turns_that_are_left_over_fail_the_test(project: pytest.Pytester, run: Run) -> None:
    project.makepyfile(
        """
        import asyncio

        from chatfold import Agent, Engine

        def test_it(chatfold_provider):
            model = chatfold_provider(["Hi.", "Never said."])
            async def talk():
                agents = [Agent(name="a", model="scripted")]
                async with Engine("memory://", agents, providers={"scripted": model}) as engine:
                    chat = (await engine.create_chat("a", "Hello.")).chat
                    await engine.settled(chat)
            asyncio.run(talk())
        """
    )
    result = run()
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*the model 'scripted' was called 1 time, its script has 2 turns*"])


def test_an_engine_has_one_script_and_plays_it_to_its_end(project: pytest.Pytester, run: Run) -> None:
    project.makepyfile(
        """
        import asyncio
        import pytest
        from chatfold import Agent
        from chatfold.testing import ScriptedProvider

        AGENTS = [Agent(name="a", model="scripted")]

        def test_left_over(chatfold_engine):
            async def talk():
                async with chatfold_engine(AGENTS, script=["Hi.", "Never said."]) as engine:
                    await engine.settled((await engine.create_chat("a", "Hello.")).chat)
            asyncio.run(talk())

        def test_two_scripts(chatfold_engine):
            with pytest.raises(ValueError, match="not both"):
                chatfold_engine(AGENTS, script=["Hi."], providers={"scripted": ScriptedProvider(["Ho."])})
        """
    )
    run().assert_outcomes(passed=4, errors=2)


def test_an_hour_of_waiting_takes_no_time(project: pytest.Pytester, run: Run) -> None:
    project.makepyfile(
        """
        from chatfold import Agent
        from chatfold.testing import ClassifiedError, Fail, ScriptedProvider, turn

        HOUR = 3_600_000_000

        def test_it(chatfold_clock):
            busy = ClassifiedError(kind="rate_limit", message="Slow down.", retryable=True, retry_after_us=HOUR)
            model = ScriptedProvider([turn(Fail(busy)), "Hi."])

            async def talk():
                agents = [Agent(name="a", model="scripted")]
                async with chatfold_clock.engine(agents, providers={"scripted": model}) as engine:
                    chat = (await engine.create_chat("a", "Hello.")).chat
                    return await engine.settled(chat)

            assert chatfold_clock.run(talk).control.status == "waiting"
            assert 3600 <= chatfold_clock.seconds < 3602
        """
    )
    run().assert_outcomes(passed=1)


def test_the_crash_test_is_a_fixture(project: pytest.Pytester, run: Run) -> None:
    project.makepyfile(
        """
        import pytest
        from chatfold.testing.crash.config import InvalidCrashConfig

        def test_it(chatfold_crash):
            report = chatfold_crash(kills=2, chats=3, workers=2)
            assert report.violations == ()
            with pytest.raises(InvalidCrashConfig):
                chatfold_crash(kills=-1)
        """
    )
    run().assert_outcomes(passed=1)


def test_a_project_with_packages_of_our_names_is_left_alone(project: pytest.Pytester, run: Run) -> None:
    for name in ("events", "store"):
        package = project.mkpydir(name)
        (package / "__init__.py").write_text("MINE = True\n", encoding="utf-8")
    project.makepyfile("import events, store\n\ndef test_it():\n    assert events.MINE and store.MINE\n")
    run().assert_outcomes(passed=1)


def test_a_fixture_in_such_a_project_says_what_is_wrong(project: pytest.Pytester, run: Run) -> None:
    (project.mkpydir("events") / "__init__.py").write_text("MINE = True\n", encoding="utf-8")
    project.makepyfile("import events\n\ndef test_it(chatfold_clock):\n    pass\n")
    result = run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*LayerImportError: chatfold needs its own package 'events'*Rename that one*"])


def test_loading_it_imports_no_layer(project: pytest.Pytester, run: Run) -> None:
    project.makepyfile(
        """
        import sys

        def test_it():
            assert "chatfold.pytest_plugin" in sys.modules
            layers = {"events", "chatstate", "store", "generation"}
            assert not {name.partition(".")[0] for name in sys.modules} & (layers | {"pydantic", "msgspec", "typer"})
        """
    )
    run().assert_outcomes(passed=1)
