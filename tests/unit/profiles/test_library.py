"""Profiles from files: inheritance and errors."""

import os
from pathlib import Path

import pytest

from internal.agent.domain.permissions.modes import Mode
from internal.agent.domain.tasks import Profile
from internal.profiles.library import ProfileLibrary, shipped_folder
from internal.tools.registry import TOOLS

NAMES = tuple(each.spec.name for each in TOOLS)


def library(folder: Path, **files: str) -> ProfileLibrary:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return ProfileLibrary([folder], NAMES)


def problem(folder: Path, name: str = "bad") -> str:
    (folder / "good.yaml").write_text("role: a gardener")
    profiles = ProfileLibrary([folder], NAMES)
    assert "good" in profiles
    assert name not in profiles
    return profiles.problems()[name].removeprefix(f"{folder}/")


def test_without_files_there_is_the_default_profile(tmp_path: Path) -> None:
    profiles = ProfileLibrary([tmp_path / "missing"], NAMES)
    assert dict(profiles) == {"default": Profile()}
    assert [(one.name, one.path, one.problem) for one in profiles.sources()] == [
        ("default", None, "")
    ]


def test_the_shipped_profiles_can_be_used() -> None:
    profiles = ProfileLibrary([shipped_folder()], NAMES)
    assert sorted(profiles) == [
        *("coder", "default", "planner", "researcher", "reviewer", "writer"),
    ]
    assert profiles.problems() == {}
    assert all(one.description for one in profiles.values())
    assert profiles["default"].role == Profile().role
    assert profiles["default"].tools is None
    assert not profiles["reviewer"].grants("write_file")
    assert profiles["planner"].permission_mode is Mode.PLAN


def test_every_key_reaches_the_profile(tmp_path: Path) -> None:
    text = """
description: Helps
role: a helper
goal: to help
tone: warm
instructions: |
  Be kind.
  Be short.
tools: [read_file, shell]
model: claude-x
permission_mode: ask
network: [registries, a.example]
plan_review: always
max_iterations: 5
max_cost: 0.5
timeout_seconds: 60
language: zh
keywords: [help, 帮助]
"""
    assert library(tmp_path, helper=text)["helper"] == Profile(
        name="helper",
        description="Helps",
        role="a helper",
        goal="to help",
        tone="warm",
        prompt="Be kind.\nBe short.",
        tools=("read_file", "shell"),
        model="claude-x",
        permission_mode=Mode.ASK,
        network=("registries", "a.example"),
        plan_review="always",
        max_iterations=5,
        max_cost=0.5,
        timeout_seconds=60.0,
        language="zh",
        keywords=("help", "帮助"),
    )


def test_a_profile_extends_another_one(tmp_path: Path) -> None:
    profiles = library(
        tmp_path,
        base="role: a baker\ngoal: bread\ntools: [read_file, shell]\nmax_cost: 1\n",
        child="extends: base\ngoal: cake\ntools: {add: [web_fetch], remove: [shell]}\n",
        grandchild="extends: child\ninstructions: Use butter.\n",
        free="extends: default\ntools: {remove: [shell]}\n",
    )
    child = profiles["child"]
    assert (child.name, child.role, child.goal, child.max_cost) == ("child", "a baker", "cake", 1.0)
    assert child.tools == ("read_file", "web_fetch")
    grandchild = profiles["grandchild"]
    assert (grandchild.goal, grandchild.tools, grandchild.prompt) == (
        *("cake", ("read_file", "web_fetch")),
        "Use butter.",
    )
    assert profiles["free"].tools == tuple(one for one in NAMES if one != "shell")


def test_the_file_of_a_later_folder_replaces_that_of_an_earlier_one(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    library(first, helper="role: a\ngoal: b\n", other="role: c\n")
    library(second, helper="role: d\n")
    profiles = ProfileLibrary([first, second], NAMES)
    assert (profiles["helper"].role, profiles["helper"].goal) == ("d", "")
    library(second, helper="role: [d]\n", default="tone: dry\n")
    assert sorted(profiles) == ["default", "other"]  # the owner's error does not bring back another
    assert "helper.yaml:1" in profiles.problems()["helper"]
    assert profiles["default"].tone == "dry"


def test_changed_files_are_read_again(tmp_path: Path) -> None:
    profiles = library(tmp_path, helper="role: a baker\n")
    assert profiles["helper"].role == "a baker"
    library(tmp_path, helper="role: a cook\n\n", new="role: a guest\n")
    assert (profiles["helper"].role, profiles["new"].role) == ("a cook", "a guest")
    (tmp_path / "new.yaml").unlink()
    assert sorted(profiles) == ["default", "helper"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("role: [a]\n", "bad.yaml:1: role must be text, not a list."),
        ("role: a\nrole: b\n", "bad.yaml:2:"),
        ("role: a\n\ntols: [shell]\n", "bad.yaml:3: tols is an unknown key; did you mean tools?"),
        ("tools:\n  ad: [shell]\n", "bad.yaml:2: tools.ad is an unknown key; did you mean add?"),
        ("tools: [read_file, shel]\n", "bad.yaml:1: there is no tool shel; did you mean shell?"),
        ("tools:\n  remove:\n    - nothing\n", "bad.yaml:3: there is no tool nothing."),
        ("extends: goood\n", "bad.yaml:1: there is no profile goood to extend; did you mean good?"),
        ("network: [off, a.example]\n", "bad.yaml:1: network: off stands alone"),
        ("permission_mode: everything\n", "bad.yaml:1: permission_mode must be"),
        ("max_cost: -1\n", "bad.yaml:1: max_cost must be at least 0"),
        ("max_cost: 0\n", "bad.yaml:1: max_cost must be more than 0."),
        ("language: fr\n", "bad.yaml:1: language must be en or zh"),
        ("instructions: |\n  hide\u202e this\n", "bad.yaml:1: instructions contains an invisible"),
        ("role: a\u200bb\n", "bad.yaml:1: role contains an invisible character (U+200B)"),
        ("- a\n", "bad.yaml: settings must be a mapping"),
        ("role: !!python/object:os.system x\n", "bad.yaml:1: tags such as !this"),
        ("role: &a x\ngoal: *a\n", "bad.yaml:1: anchors are not supported"),
        ("role: 'a\n", "bad.yaml:"),
        ("role: a\x00b\n", "bad.yaml: it contains a control character."),
        (f"instructions: {'x' * 40_000}\n", "instructions must have at most 32,000 characters"),
        (f"role: {'x' * 300_000}\n", "bad.yaml is larger than 262144 bytes."),
    ],
)
def test_an_error_is_named_with_its_line_and_the_others_load(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "bad.yaml").write_text(text, encoding="utf-8")
    assert sentence in problem(tmp_path)


def test_profiles_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    profiles = library(tmp_path, a="extends: b\n", b="extends: c\n", c="extends: a\n", d="role: d")
    assert sorted(profiles) == ["d", "default"]
    found = profiles.problems()["a"]
    assert found.endswith("c.yaml:1: the profiles extend each other: a → b → c → a.")
    broken = library(tmp_path, a="role: [x]\n", b="extends: a\n", c="role: c\n")
    assert sorted(broken) == ["c", "d", "default"]
    assert "a, which it extends, cannot be used" in broken.problems()["b"]
    names = {f"n{number}": f"extends: n{number + 1}\n" for number in range(20)}
    deep = library(tmp_path, **names, n20="role: x\n")
    assert "more than 8 profiles extend one another" in deep.problems()["n0"]
    assert "n15" in deep


def test_what_is_no_readable_file_is_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "bad.yaml")
    assert problem(tmp_path) == "bad.yaml is not a file."
    (tmp_path / "bad.yaml").unlink()
    (tmp_path / "bad.yaml").write_bytes(b"role: \xff\n")
    assert problem(tmp_path) == "bad.yaml is not UTF-8 (byte 6)."
    (tmp_path / "bad.yaml").unlink()
    (tmp_path / "bad.yaml").symlink_to(tmp_path / "missing")
    assert "cannot be read" in problem(tmp_path)
    (tmp_path / "Bad Name.yaml").write_text("role: x")
    assert "use lower-case letters" in problem(tmp_path, "Bad Name")


def test_shipped_files_are_looked_for_once(tmp_path: Path) -> None:
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    for folder in (shipped, own):
        folder.mkdir()
        (folder / "one.yaml").write_text("max_iterations: 3\n")
    (shipped / "two.yaml").write_text("max_iterations: 4\n")
    library = ProfileLibrary([own], NAMES, shipped=shipped)
    assert sorted(library) == ["default", "one", "two"]
    assert library["one"].max_iterations == 3

    (shipped / "three.yaml").write_text("max_iterations: 5\n")
    (own / "four.yaml").write_text("max_iterations: 6\n")
    (own / "one.yaml").write_text("max_iterations: 60\n")

    assert sorted(library) == ["default", "four", "one", "two"]
    assert library["one"].max_iterations == 60


def test_the_folders_of_files_are_known_before_they_are_read(tmp_path: Path) -> None:
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    for folder in (shipped, own):
        folder.mkdir()
    (shipped / "coder.yaml").write_text("[")
    library = ProfileLibrary((shipped, own), ())
    assert library.has_only(shipped)
    (own / "default.yaml").write_text("[")
    assert not library.has_only(shipped)
