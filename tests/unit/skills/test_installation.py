"""Adding and removing skills: hostile folders and archives are refused and leave nothing behind."""

import os
import shutil
import stat
import zipfile
from pathlib import Path

import pytest

from internal.agent.domain.errors import LarkspurError
from internal.skills.errors import SkillRefused
from internal.skills.installation import add_skills, remove_skill
from internal.skills.library import Skill, read_skill

SKILL = "---\nname: reports\ndescription: Writes reports.\n---\nBody"


def add_skill(source: Path, folder: Path) -> Skill:
    """Add the only skill of a source."""
    (skill,), problems = add_skills(source, folder)
    assert problems == []
    return skill


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    (source / "scripts").mkdir(parents=True)
    (source / "SKILL.md").write_text(SKILL)
    script = source / "scripts" / "run.py"
    script.write_text("#!/usr/bin/env python3\nopen('executed', 'w')\n")
    script.chmod(0o4755)
    (source / ".git").mkdir()
    (source / ".git" / "config").write_text("[core]\nfsmonitor = touch executed")
    return source


def test_a_folder_is_copied_under_the_name_of_the_skill(source: Path, tmp_path: Path) -> None:
    (source / "link.md").symlink_to("SKILL.md")
    skill = add_skill(source, tmp_path / "skills")
    assert skill.folder == tmp_path / "skills" / "reports"
    assert skill.state == "not reviewed"
    assert [each.path for each in skill.entries] == ["SKILL.md", "link.md", "scripts/run.py"]
    mode = (skill.folder / "scripts" / "run.py").stat().st_mode
    assert stat.S_IMODE(mode) == 0o755
    assert names_in(tmp_path / "skills") == ["reports"]
    assert not list(tmp_path.rglob("executed"))
    with pytest.raises(SkillRefused, match="a skill reports already"):
        add_skill(source, tmp_path / "skills")


def test_a_zip_file_is_unpacked(tmp_path: Path) -> None:
    archive = tmp_path / "reports.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("top/SKILL.md", SKILL)
        file.writestr("__MACOSX/top/SKILL.md", "x")
        script = zipfile.ZipInfo("top/scripts/run.py")
        script.external_attr = 0o100755 << 16
        file.writestr(script, "1")
    skill = add_skill(archive, tmp_path / "skills")
    assert [(each.path, each.executable) for each in skill.entries] == [
        ("SKILL.md", False),
        ("scripts/run.py", True),
    ]


def info(name: str, mode: int = 0) -> zipfile.ZipInfo:
    found = zipfile.ZipInfo(name)
    found.external_attr = mode << 16
    found.compress_type = zipfile.ZIP_DEFLATED
    return found


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("entry", "content", "problem"),
    [
        (info("../evil"), b"", "leads out"),
        (info("a/../../evil"), b"", "leads out"),
        (info("/etc/evil"), b"", "not a relative path"),
        (info("C:/evil"), b"", "not a relative path"),
        (info("a\\evil"), b"", "not a relative path"),
        (info("a\nb"), b"", "a character that a name cannot have"),
        (info("a\u202eb"), b"", "a character that a name cannot have"),
        (info("link", 0o120777), b"/etc/passwd", "a link or a device"),
        (info("device", 0o020666), b"", "a link or a device"),
        (info("a/" * 30), b"", "nested too deeply"),
        (info("skill.MD"), b"", "is in it twice"),
        (info("SKILL.md"), b"", "is in it twice"),
        (info("SKILL.md/x"), b"", "cannot be added"),
        (info("bomb"), b"\0" * 15_000_000, "compressed more than 100 times"),
        (info("bomb"), b"\0" * 25_000_000, "more than 20,000,000 bytes"),
    ],
)
def test_a_hostile_archive_is_refused(
    tmp_path: Path, entry: zipfile.ZipInfo, content: bytes, problem: str
) -> None:
    archive = tmp_path / "reports.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("SKILL.md", SKILL)
        file.writestr(entry, content)
    with pytest.raises(SkillRefused, match=problem):
        add_skill(archive, tmp_path / "skills")
    assert names_in(tmp_path) == ["reports.zip", "skills"]
    assert names_in(tmp_path / "skills") == []


def test_an_encrypted_a_lying_and_a_damaged_archive_are_refused(tmp_path: Path) -> None:
    archive = tmp_path / "reports.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("SKILL.md", SKILL)
        file.writestr("bomb", os.urandom(300_000) + b"\0" * 22_000_000)
    whole = archive.read_bytes()
    directory = whole.index(b"PK\x01\x02")
    encrypted = bytearray(whole)
    encrypted[directory + 8] |= 1
    at = whole.index(b"PK\x01\x02", directory + 4)
    lying = bytearray(whole)
    lying[at + 24 : at + 28] = (1_000).to_bytes(4, "little")
    cases = (
        (bytes(encrypted), "is encrypted"),
        (bytes(lying), "not a ZIP|cannot be added"),
        (whole[:-50], "not a ZIP"),
    )
    for content, problem in (*cases, (b"text", "not a ZIP")):
        archive.write_bytes(content)
        with pytest.raises(SkillRefused, match=problem):
            add_skill(archive, tmp_path / "skills")
        assert names_in(tmp_path / "skills") == []


def test_a_hostile_folder_is_refused(source: Path, tmp_path: Path) -> None:
    def links_out() -> None:
        (source / "out").symlink_to("../secret")

    def has_a_pipe() -> None:
        (source / "out").unlink()
        os.mkfifo(source / "pipe")

    def is_too_large() -> None:
        (source / "pipe").unlink()
        with (source / "large").open("wb") as file:
            file.truncate(20_000_001)

    def has_no_skill() -> None:
        (source / "large").unlink()
        (source / "SKILL.md").unlink()

    for change in (links_out, has_a_pipe, is_too_large, has_no_skill):
        change()
        with pytest.raises(LarkspurError):
            add_skill(source, tmp_path / "skills")
        assert names_in(tmp_path / "skills") == []
    with pytest.raises(SkillRefused, match=r"not a folder or ZIP file|cannot be added"):
        add_skill(tmp_path / "missing", tmp_path / "skills")


def test_only_an_added_skill_is_removed(source: Path, tmp_path: Path) -> None:
    skill = add_skill(source, tmp_path / "skills")
    with pytest.raises(SkillRefused, match="was not added here"):
        remove_skill(read_skill(source, "shared"))
    remove_skill(skill)
    assert names_in(tmp_path / "skills") == []


def write_skill(folder: Path, name: str, *, files: int = 0) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does {name}.\n---\nBody")
    for number in range(files):
        (folder / f"{number}.txt").write_text("x")


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """A repository of skills: a marketplace of plugins, more than 500 files, and odd folders."""
    root = tmp_path / "skills-main"
    for name in ("docx", "pdf"):
        write_skill(root / "skills" / name, name, files=270)
    write_skill(root / "plugins" / "office" / "skills" / "group" / "sheets", "sheets")
    write_skill(root / "template" / "reports", "reports")
    write_skill(root / "template" / "reports" / "inner", "inner")
    write_skill(root / "plugins" / "copy" / "skills" / "docx", "docx")
    write_skill(root / "large", "large", files=501)
    write_skill(root / ".claude" / "skills" / "release", "release")
    write_skill(root / "node_modules" / "x", "dependency")
    write_skill(root / ".git" / "x", "hidden")
    (root / ".claude-plugin").mkdir()
    (root / ".claude-plugin" / "marketplace.json").write_text("{}")
    (root / "secret").symlink_to("/etc")
    (root / "README.md").write_text("Skills")
    return root


def zipped(folder: Path) -> Path:
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w") as file:
        for each in sorted(folder.rglob("*")):
            if each.is_symlink():
                file.writestr(info(f"{folder.name}/{each.name}", 0o120777), str(each.readlink()))
            else:
                file.write(each, f"{folder.name}/{each.relative_to(folder)}")
    return archive


@pytest.mark.parametrize("is_zip", [False, True])
def test_a_whole_collection_is_added_and_what_cannot_be_is_named(
    collection: Path, tmp_path: Path, *, is_zip: bool
) -> None:
    source = zipped(collection) if is_zip else collection
    added, problems = add_skills(source, tmp_path / "skills")
    assert {each.name for each in added} == {"docx", "pdf", "sheets", "reports"}
    assert {each.state for each in added} == {"not reviewed"}
    assert names_in(tmp_path / "skills") == ["docx", "pdf", "reports", "sheets"]
    assert any("there is a skill docx already" in each for each in problems)
    place = f"{source}/{'skills-main/' if is_zip else ''}large"
    assert f"{place}: a skill may have at most 500 files." in problems
    assert len(problems) == (2 if is_zip else 3)  # a link that leads out, which a ZIP cannot have
    (reports,) = (each for each in added if each.name == "reports")
    assert "inner/SKILL.md" in {each.path for each in reports.entries}
    _, again = add_skills(source, tmp_path / "skills")
    assert sum("already; remove it first" in each for each in again) == 5


def test_skills_in_folders_with_a_dot_count_if_there_are_no_others(
    collection: Path, tmp_path: Path
) -> None:
    for name in ("skills", "plugins", "template", "large"):
        shutil.rmtree(collection / name)
    for source in (collection, zipped(collection)):
        added, _ = add_skills(source, tmp_path / f"to-{source.suffix}")
        assert [each.name for each in added] == ["release"]
