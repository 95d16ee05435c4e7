"""Files and skills of real directories: what is taken, what is told of the rest, and what no path leads to."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

import pytest
import yaml

from events.ids import ChatId
from generation.context import Context, SkillUnavailable
from generation.context_directory import RESOURCE_BYTES, RESOURCES, SKILL_FILE_BYTES, DirectoryContext
from generation.errors import AgentDeclarationError

CHAT = ChatId("chat")


def put(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def skill(name: str, description: str = "What it is for.", body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"


async def collected(*roots: Path) -> Context:
    return await DirectoryContext(roots).collect(CHAT)


def faults(context: Context) -> dict[str, str]:
    return {problem.path: problem.fault for problem in context.problems}


async def test_instruction_files_are_taken_by_exact_name_at_the_top_of_a_root_alone(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "AGENTS.md": "agents",
            "CLAUDE.md": "claude",
            ".cursorrules": "rules",
            "README.md": "no",
            "below/AGENTS.md": "no",
            "docs/agents.md": "no",
        },
    )
    context = await collected(tmp_path)
    assert [(file.path, file.text) for file in context.files] == [
        (".cursorrules", "rules"),
        ("AGENTS.md", "agents"),
        ("CLAUDE.md", "claude"),
    ]
    assert {file.directory for file in context.files} == {str(tmp_path)}
    assert context.problems == ()


async def test_a_name_in_another_case_is_another_name(tmp_path: Path) -> None:
    put(tmp_path, {"agents.md": "no", "Claude.md": "no", "skills/low/skill.md": skill("low")})
    assert await collected(tmp_path) == Context()


@pytest.mark.parametrize("folder", ["skills", ".agents/skills", ".claude/skills", ".codex/skills"])
async def test_skills_are_found_in_four_folders(tmp_path: Path, folder: str) -> None:
    put(
        tmp_path,
        {f"{folder}/deploy/SKILL.md": skill("deploy"), f"{folder}/SKILL.md": "no", f"{folder}/x/y/SKILL.md": "no"},
    )
    (found,) = (await collected(tmp_path)).skills
    assert (found.name, found.description, found.directory) == ("deploy", "What it is for.", f"{folder}/deploy")


async def test_the_first_skill_of_a_name_wins_in_the_order_of_folders_and_roots(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    put(
        one,
        {
            ".claude/skills/deploy/SKILL.md": skill("deploy", "second"),
            "skills/deploy/SKILL.md": skill("deploy", "first"),
        },
    )
    put(two, {"skills/deploy/SKILL.md": skill("deploy", "third"), "skills/test/SKILL.md": skill("test")})
    context = await collected(one, two)
    assert [(each.name, each.description) for each in context.skills] == [
        ("deploy", "first"),
        ("test", "What it is for."),
    ]
    assert faults(context) == {
        f"{one}/.claude/skills/deploy/SKILL.md": "excluded",
        f"{two}/skills/deploy/SKILL.md": "excluded",
    }
    source = DirectoryContext([one, two])
    assert (await source.read_skill(CHAT, "deploy")).directory == f"{one}/skills/deploy"


async def test_a_skill_that_is_not_sound_takes_no_name(tmp_path: Path) -> None:
    put(tmp_path, {"skills/deploy/SKILL.md": "no front matter", ".codex/skills/deploy/SKILL.md": skill("deploy")})
    context = await collected(tmp_path)
    assert [each.directory for each in context.skills] == [".codex/skills/deploy"]
    assert faults(context) == {"skills/deploy/SKILL.md": "invalid"}
    assert (await DirectoryContext(tmp_path).read_skill(CHAT, "deploy")).body == "Do it."


@pytest.fixture(params=["C", "Python"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which of YAML's loaders there is: not every build has the one in C."""
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CBaseLoader", raising=False)
    return str(request.param)


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Just text.", "begins with no front matter"),
        ("---\nname: deploy\ndescription: d\n", "begins with no front matter"),
        (skill("other"), "its front matter says 'other', its folder 'deploy'"),
        ("---\ndescription: d\n---\n", "has no name"),
        ("---\nname: deploy\n---\n", "has no description"),
        ("---\nname: deploy\ndescription: ' '\n---\n", "has no description"),
        ("---\nname: [deploy]\ndescription: d\n---\n", "has no name"),
        ("---\n- name\n---\n", "no mapping"),
        ("---\n---\n", "no mapping"),
        ("---\nname: 'deploy\n---\n", "no YAML"),
        ("---\nname: !!python/object/apply:os.system [exit]\ndescription: d\n---\n", "no name"),
        (f"---\nname: {'[' * 5000}\n---\n", "no YAML"),
    ],
)
async def test_front_matter_that_is_none(tmp_path: Path, text: str, said: str) -> None:
    put(tmp_path, {"skills/deploy/SKILL.md": text})
    context = await collected(tmp_path)
    assert context.skills == ()
    (problem,) = context.problems
    assert (problem.path, problem.fault) == ("skills/deploy/SKILL.md", "invalid")
    assert said in problem.detail


@pytest.mark.usefixtures("loader")
@pytest.mark.parametrize("name", ["2024-01-01", "1.0", "on", "null"])
async def test_a_name_stays_what_was_written(tmp_path: Path, name: str) -> None:
    put(
        tmp_path,
        {
            f"skills/{name}/SKILL.md": "\ufeff---\r\n"
            f"name: {name}\r\ndescription: >\r\n  Two\r\n  lines.\r\n---\r\nBody.\r\n"
        },
    )
    (found,) = (await collected(tmp_path)).skills
    assert (found.name, found.description) == (name, "Two lines.")
    assert (await DirectoryContext(tmp_path).read_skill(CHAT, name)).body == "Body."


async def test_a_resource_of_64_kib_is_taken_and_one_byte_more_is_not(tmp_path: Path) -> None:
    assert RESOURCE_BYTES == 65536
    whole = skill("whole", body="")
    put(
        tmp_path,
        {
            "AGENTS.md": "a" * 65536,
            "CLAUDE.md": "ä" * 32768 + "a",
            "skills/whole/SKILL.md": whole + "b" * (65536 - len(whole)),
            "skills/large/SKILL.md": skill("large", body="b" * 65536),
        },
    )
    context = await collected(tmp_path)
    assert [file.path for file in context.files] == ["AGENTS.md"]
    assert [each.name for each in context.skills] == ["whole"]
    assert faults(context) == {"CLAUDE.md": "oversize", "skills/large/SKILL.md": "oversize"}


async def test_all_together_may_have_2_mib(tmp_path: Path) -> None:
    def of_size(name: str, size: int) -> str:
        text = skill(name, body="")
        return text + "b" * (size - len(text))

    put(tmp_path, {"AGENTS.md": "a" * 65536})
    put(tmp_path, {f"skills/s{n:02}/SKILL.md": of_size(f"s{n:02}", 65536) for n in range(30)})
    put(tmp_path, {"skills/t/SKILL.md": of_size("t", 65536 - 100), "skills/u/SKILL.md": of_size("u", 101)})
    context = await collected(tmp_path)
    assert faults(context) == {"skills/u/SKILL.md": "excluded"}
    assert len(context.skills) == 31
    put(tmp_path, {"skills/u/SKILL.md": of_size("u", 100)})
    assert (await collected(tmp_path)).problems == ()


async def test_500_resources_are_taken_and_skills_crowd_out_no_files(tmp_path: Path) -> None:
    put(tmp_path, {"AGENTS.md": "agents"})
    put(tmp_path, {f"skills/s{n:03}/SKILL.md": skill(f"s{n:03}") for n in range(RESOURCES + 1)})
    context = await collected(tmp_path)
    assert (len(context.files), len(context.skills)) == (1, 499)
    assert faults(context) == {"skills/s499/SKILL.md": "excluded", "skills/s500/SKILL.md": "excluded"}


async def test_links_are_followed_inside_a_root_alone(tmp_path: Path) -> None:
    root = put(
        tmp_path / "root",
        {"docs/rules.md": "rules", "lib/deploy/SKILL.md": skill("deploy"), "skills/x/SKILL.md": skill("x")},
    )
    put(tmp_path, {"secret.md": "secret", "away/SKILL.md": skill("away"), "root-2/AGENTS.md": "neighbour"})
    (root / "AGENTS.md").symlink_to("docs/rules.md")
    (root / "CLAUDE.md").symlink_to("../secret.md")
    (root / ".cursorrules").symlink_to("docs/gone.md")
    (root / "skills/deploy").symlink_to("../lib/deploy")
    (root / "skills/away").symlink_to(tmp_path / "away")
    (root / "skills/broken").symlink_to("nowhere")
    (root / "skills/near").symlink_to(tmp_path / "root-2")
    (root / "skills/round").symlink_to("round")
    (root / ".codex").symlink_to(tmp_path)
    context = await collected(root)
    assert [(file.path, file.text) for file in context.files] == [("AGENTS.md", "rules")]
    assert [each.name for each in context.skills] == ["deploy", "x"]
    assert faults(context) == {
        "CLAUDE.md": "invalid",
        ".cursorrules": "unreadable",
        "skills/away": "invalid",
        "skills/broken": "unreadable",
        "skills/near": "invalid",
        "skills/round": "unreadable",
        ".codex/skills": "invalid",
    }


async def test_a_root_may_be_a_link_itself(tmp_path: Path) -> None:
    put(tmp_path / "real", {"AGENTS.md": "agents"})
    (tmp_path / "link").symlink_to("real")
    assert [file.text for file in (await collected(tmp_path / "link")).files] == ["agents"]


async def test_what_is_no_text_file_is_told(tmp_path: Path) -> None:
    put(tmp_path, {"CLAUDE.md": b"\xff\xfe", "skills/deploy": "a file, no folder"})
    (tmp_path / "AGENTS.md").mkdir()
    os.mkfifo(tmp_path / ".cursorrules")
    context = await collected(tmp_path)
    assert faults(context) == {"AGENTS.md": "invalid", "CLAUDE.md": "invalid", ".cursorrules": "invalid"}
    assert (context.files, context.skills) == ((), ())


@pytest.mark.parametrize(("name", "said"), [("gone", "No such file or directory"), ("file", "Not a directory")])
def test_a_named_root_that_is_not_there_is_refused_where_it_is_declared(tmp_path: Path, name: str, said: str) -> None:
    put(tmp_path, {"here/AGENTS.md": "agents", "file": ""})
    with pytest.raises(AgentDeclarationError, match=rf"{re.escape(str(tmp_path / name))}.*{said}"):
        DirectoryContext([tmp_path / "here", tmp_path / name])


async def test_a_root_that_is_not_there_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path, {"here/AGENTS.md": "agents", "file": ""})
    roots = [tmp_path / "gone", tmp_path / "here", tmp_path / "file"]
    with caplog.at_level(logging.WARNING):
        context = await DirectoryContext(lambda _: roots).collect(CHAT)
    told = [vars(record) for record in caplog.records if record.getMessage() == "context_root_unreadable"]
    assert [(each["root"], each["chat"]) for each in told] == [
        (str(tmp_path / "file"), CHAT),
        (str(tmp_path / "gone"), CHAT),
    ]
    assert [file.path for file in context.files] == [f"{tmp_path}/here/AGENTS.md"]
    assert faults(context) == {f"{tmp_path}/gone": "unreadable", f"{tmp_path}/file": "unreadable"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads all")
async def test_what_the_system_refuses_is_unreadable(tmp_path: Path) -> None:
    put(tmp_path, {"AGENTS.md": "agents"})
    (tmp_path / "AGENTS.md").chmod(0)
    assert faults(await collected(tmp_path)) == {"AGENTS.md": "unreadable"}


async def test_the_revision_is_of_what_the_model_reads(tmp_path: Path) -> None:
    put(tmp_path, {"AGENTS.md": "agents", "skills/deploy/SKILL.md": skill("deploy")})
    source = DirectoryContext(tmp_path)
    first = await source.revision_for(CHAT)
    assert (source.revision, first) == (None, (await source.collect(CHAT)).revision)

    put(tmp_path, {"skills/deploy/SKILL.md": skill("deploy", body="Do it otherwise."), "skills/deploy/more.md": "more"})
    put(tmp_path, {"other.md": "other", "skills/broken/SKILL.md": "none"})
    assert await source.revision_for(CHAT) == first

    seen = {first}
    for change in (
        {"AGENTS.md": "agents!"},
        {"skills/deploy/SKILL.md": skill("deploy", "Otherwise.")},
        {"skills/another/SKILL.md": skill("another")},
        {"CLAUDE.md": ""},
    ):
        put(tmp_path, dict(change))
        seen.add(await source.revision_for(CHAT))
    assert len(seen) == 5


async def test_each_chat_may_have_roots_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, {"a/AGENTS.md": "of a", "b/AGENTS.md": "of b"})

    async def later(chat: str) -> list[Path]:
        return [tmp_path / chat]

    for source in (DirectoryContext(lambda chat: tmp_path / chat), DirectoryContext(later)):
        assert [file.text for file in (await source.collect(ChatId("a"))).files] == ["of a"]
        assert await source.revision_for(ChatId("a")) != await source.revision_for(ChatId("b"))
    with pytest.raises(AgentDeclarationError):
        DirectoryContext(5)  # type: ignore[arg-type]
    with pytest.raises(AgentDeclarationError):
        await DirectoryContext(lambda _: None).collect(CHAT)  # type: ignore[arg-type,return-value]


async def test_a_skill_is_read_with_what_lies_beside_it(tmp_path: Path) -> None:
    put(
        tmp_path,
        {"skills/deploy/SKILL.md": skill("deploy"), "skills/deploy/b/run.sh": "run", "skills/deploy/a.md": "a"},
    )
    put(tmp_path, {"skills/deploy/.hidden": "no", "skills/deploy/.git/config": "no", "skills/deploy/no.md": "no"})
    (tmp_path / "skills/deploy/no.md").unlink()
    (tmp_path / "skills/deploy/no.md").symlink_to("/etc/hostname")
    found = await DirectoryContext(tmp_path).read_skill(CHAT, "deploy")
    assert (found.name, found.directory, found.body) == ("deploy", "skills/deploy", "Do it.")
    assert found.files == ("a.md", "b/run.sh")


@pytest.mark.parametrize(
    "name", ["gone", "", "..", "../skills/deploy", "deploy/SKILL.md", ".hidden", "de\0ploy", "/etc"]
)
async def test_a_skill_that_is_not_there(tmp_path: Path, name: str) -> None:
    put(tmp_path, {"skills/deploy/SKILL.md": skill("deploy"), "skills/.hidden/SKILL.md": skill(".hidden")})
    with pytest.raises(SkillUnavailable, match="Skill not available"):
        await DirectoryContext(tmp_path).read_skill(CHAT, name)


async def test_a_file_of_a_skill_of_512_kib_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    assert SKILL_FILE_BYTES == 524288
    put(
        tmp_path,
        {"skills/deploy/SKILL.md": skill("deploy"), "skills/deploy/b/w": "a" * 524288, "skills/deploy/m": "a" * 524289},
    )
    source = DirectoryContext(tmp_path)
    assert await source.read_skill_file(CHAT, "deploy", "b/w") == "a" * 524288
    with pytest.raises(SkillUnavailable, match="is larger than 524288 bytes"):
        await source.read_skill_file(CHAT, "deploy", "m")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/etc/hostname", "must be relative"),
        ("../other/SKILL.md", "must not go up"),
        ("b/../../other/SKILL.md", "must not go up"),
        ("b/..", "must not go up"),
        (".hidden", "something hidden, or nothing"),
        ("b/.git/config", "something hidden, or nothing"),
        ("./a.md", "something hidden, or nothing"),
        ("", "something hidden, or nothing"),
        ("b//run", "something hidden, or nothing"),
        ("b", "is no regular file"),
        ("gone", "No such file"),
        ("a.md/x", "Not a directory"),
        ("a\0", "null"),
        ("bytes", "is no UTF-8 text"),
        ("out", "leads out of its directory"),
        ("sibling", "leads out of its directory"),
        ("up/SKILL.md", "leads out of its directory"),
    ],
)
async def test_what_is_no_file_of_a_skill(tmp_path: Path, path: str, said: str) -> None:
    own = tmp_path / "skills/deploy"
    put(tmp_path, {"skills/deploy/SKILL.md": skill("deploy"), "skills/other/SKILL.md": skill("other")})
    put(own, {"a.md": "a", "b/run": "r", ".hidden": "h", "b/.git/config": "c", "bytes": b"\xff"})
    (own / "out").symlink_to("/etc/hostname")
    (own / "sibling").symlink_to("../other/SKILL.md")
    (own / "up").symlink_to("../other")
    (own / "link.md").symlink_to("a.md")
    source = DirectoryContext(tmp_path)
    assert await source.read_skill_file(CHAT, "deploy", "link.md") == "a"
    with pytest.raises(SkillUnavailable) as refused:
        await source.read_skill_file(CHAT, "deploy", path)
    assert said in str(refused.value)
    assert str(tmp_path) not in str(refused.value)
