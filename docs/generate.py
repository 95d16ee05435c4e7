"""Writes the pages of the documentation that are made from the code.

Owns the list of those pages; what a page says is made by the code that it is about. To add a page: write a function
that gives its text and enter it in `PAGES`; import what it needs inside the function. `make docs` writes all pages,
`--check` writes nothing and exits with 1 if a page is stale (a test runs it).
"""

import argparse
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).parent
NOTICE: Final = "<!-- Made by docs/generate.py. Change it there, then run `make docs`. -->\n\n"


def decisions_index() -> str:
    """Make the index of the decision pages from their titles."""
    lines = ["# Decisions", "", "One page each: the context, the choice, and what it costs.", ""]
    for page in sorted(DOCS.glob("decisions/[0-9]*.md")):
        title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({page.name})")
    return "\n".join(lines) + "\n"


def events() -> str:
    """Make the page of all events from the vocabulary."""
    from chatfold._docs.events_page import render

    return render()


def state_machine() -> str:
    """Make the page of the machine from its table."""
    from chatfold._docs.state_machine_page import render

    return render()


def decision_rules() -> str:
    """Make the page of the decision rules from their table."""
    from chatfold._docs.rules_page import render

    return render()


SECTIONS: Final = {
    "1": "The turn",
    "2": "Model steps",
    "3": "Tools",
    "4": "Compaction",
    "5": "Errors",
    "6": "Retries",
    "7": "History that a service takes",
    "9": "What clients see",
    "11": "OpenAI",
    "12": "Tools of skills",
    "16": "Titles and labels",
    "17": "Costs",
    "19": "Debug records",
    "21": "Context",
    "28": "Metrics",
}
"""Number of a group of generation rules -> its heading."""


def known_rules() -> list[dict[str, Any]]:
    """Return all generation rules of `rules/*.toml`, in the order of their sections and ids."""
    texts = (file.read_text(encoding="utf-8") for file in sorted(DOCS.glob("rules/*.toml")))
    found = [rule for text in texts for rule in tomllib.loads(text)["rule"]]
    return sorted(found, key=lambda rule: ([int(number) for number in rule["section"].split(".")], rule["id"]))


def generation_rules() -> str:
    """Make the table of the generation rules and the tests that show them."""
    lines = ["# Generation rules and their tests", "", "What a turn does when the real world answers: each rule, and"]
    lines += ["the tests that show it. A rule that is held otherwise than elsewhere, or not, names the decision."]
    group = ""
    for rule in known_rules():
        number = rule["section"].split(".")[0]
        if number != group:
            group = number
            lines += ["", f"## {SECTIONS[number]}", ""]
            lines += ["| rule | what holds | shown by | decision |", "| --- | --- | --- | --- |"]
        tests = "<br>".join(f"`{test}`" for test in rule["tests"])
        page = next((page.name for page in DOCS.glob(f"decisions/{rule.get('decision', 'none')}-*.md")), None)
        decision = f"[{rule['decision']}](decisions/{page})" if page else ""
        lines.append(f"| {rule['id']} | {rule['rule']} | {tests} | {decision} |")
    return "\n".join(lines) + "\n"


def model_options() -> str:
    """Make the page of the options of models from their table."""
    from chatfold._docs.options_page import render

    return render()


def settings() -> str:
    """Make the page of the settings from their class."""
    from chatfold._docs.settings_page import render

    return render()


def command_line() -> str:
    """Make the page of the command line from its help and its shapes."""
    from chatfold._docs.cli_page import render

    return render()


PAGES: Final[dict[str, Callable[[], str]]] = {
    "cli.md": command_line,
    "decisions/README.md": decisions_index,
    "decision-rules.md": decision_rules,
    "events.md": events,
    "generation-rules.md": generation_rules,
    "model-options.md": model_options,
    "settings.md": settings,
    "state-machine.md": state_machine,
}
"""Path below docs/ -> the function that gives the page's text, without the notice."""


def main() -> int:
    """Write the pages, or tell which are stale.

    Returns:
        The exit code: 1 if `--check` found a stale page.
    """
    parser = argparse.ArgumentParser(description="Write the pages that are made from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    check = parser.parse_args().check
    stale = False
    for name, make in PAGES.items():
        page = DOCS / name
        text = NOTICE + make()
        if page.is_file() and page.read_text(encoding="utf-8") == text:
            continue
        if check:
            stale = True
            print(f"docs/{name} is stale: run `make docs`")
        else:
            page.write_text(text, encoding="utf-8")
            print(f"wrote docs/{name}")
    registered = {DOCS / name for name in PAGES}
    for page in sorted(DOCS.rglob("*.md")):
        if page not in registered and page.read_text(encoding="utf-8").startswith(NOTICE.strip()):
            stale = True
            print(f"{page.relative_to(DOCS.parent)} says that it is generated, and PAGES does not know it")
    return int(stale)


if __name__ == "__main__":
    sys.exit(main())
