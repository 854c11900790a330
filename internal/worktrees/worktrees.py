"""Worktrees: copies of the newest commit of a repository, each with a branch of its own.

A worktree has a `.git` folder of its own, which borrows the objects of the repository. The agent
that works in it uses git there as in any workspace and changes nothing of the repository. Its files
are taken over with another git folder, which exists for a moment and nobody else writes. So no
configuration of the repository or the worktree names a program that runs here; with `git worktree`
the agent would share the branches and the configuration of the person.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from internal.agent.domain.errors import Conflict, InvalidRequest, StoreUnavailable
from internal.agent.domain.text import format_size
from internal.agent.ports.workspaces import WorktreeChanges
from internal.git.private_repository import object_format, private_repository
from internal.git.process import GitFailed, OutputTooLarge, run_git
from internal.open_files.paths import open_without_links
from internal.worktrees.repository import Repository, check_repository, read_repository

MAX_FILE_BYTES = 100 * 1024 * 1024
"""The size of a file that is taken over."""
MAX_PATCH_BYTES = 16 * 1024 * 1024
BRANCH_PREFIX = "larkspur/"
_MAX_SHALLOW_BYTES = 64 * 1024 * 1024
_SHORT_ID, _SHORT_HASH = 8, 10
_MAX_NAMED = 5
_SUBMODULE = b"160000 "
_REMOVED = b"0 "
_SOME_FAILED = 1  # the exit code of `git add --ignore-errors`
_APPLY = ("apply", "--whitespace=nowarn")
_DIFF = ("diff-tree", "-r", "--no-ext-diff", "--no-textconv", "--no-renames", "--no-color")
_PATCH = ("-p", "--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/")


class _Record(msgspec.Struct, frozen=True):
    """The record of a worktree, in a file beside it that no tool opens."""

    repository: str
    base: str
    branch: str

    @property
    def objects(self) -> str:
        """The folder of the objects of the repository."""
        return Repository(self.repository, self.base).objects

    @property
    def reference(self) -> str:
        """The full name of the branch."""
        return f"refs/heads/{self.branch}"


class GitWorktrees:
    """Makes worktrees and takes their changes over; see `Worktrees`."""

    def describe(self, repository: str, /) -> str:
        """Return a sentence about the initial content of a worktree of a folder."""
        found = read_repository(repository)
        return (
            f"The worktree starts at commit {found.head[:_SHORT_HASH]} (HEAD);"
            " uncommitted changes are not in it."
        )

    def create(self, repository: str, folder: str, /) -> None:
        """Make a worktree of the newest commit, unless the folder is one already."""
        path = Path(folder)
        if path.is_dir():
            return
        found = read_repository(repository)
        new = Path(f"{folder}.new")
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            shutil.rmtree(new, ignore_errors=True)  # of a process that was killed
            new.mkdir(mode=0o700)
            branch = f"{BRANCH_PREFIX}{path.name[-_SHORT_ID:]}"
            try:
                _fill(new, found, branch)
            except GitFailed as error:
                shutil.rmtree(new, ignore_errors=True)
                raise InvalidRequest(
                    f"No worktree of {repository} can be made: {error}",
                    reason_code="no_worktree",
                    repository=repository,
                    detail=str(error),
                ) from error
            _write_record(folder, _Record(repository, found.head, branch))
            new.rename(path)
        except OSError as error:
            raise StoreUnavailable(f"{folder} cannot be created: {error.strerror}.") from error

    def objects(self, folder: str, /) -> str:
        """Return the folder that commands need to read for git in a worktree, "" without one."""
        record = _read_record(folder)
        return "" if record is None else record.objects

    def collect(self, folder: str, /) -> WorktreeChanges | None:
        """Commit the content of a worktree to its branch in the repository; None if unchanged."""
        record = _read_record(folder)
        if record is None or not Path(folder).is_dir():
            raise Conflict("The worktree is gone.", reason_code="worktree_gone")
        try:
            check_repository(record.repository)
            with private_repository(folder, record.objects, record.base) as own:
                left_out = _stage(folder, own, record.base)
                tree = _line("write-tree", variables=own)
                if tree == _line("rev-parse", f"{record.base}^{{tree}}", variables=own):
                    return None
                return _commit(folder, record, tree, own=own, left_out=left_out)
        except (GitFailed, InvalidRequest, OSError) as error:
            raise Conflict(
                f"The changes in the worktree cannot be committed: {error}",
                reason_code="worktree_not_committed",
                detail=str(error),
            ) from error

    def check(self, repository: str, patch: bytes, /) -> tuple[str, ...]:
        """Return the paths that a patch changes in a repository."""
        listed = _apply(repository, patch, "--check", "--numstat", "-z")
        return tuple(os.fsdecode(row.split(b"\t", 2)[2]) for row in listed.split(b"\0") if row)

    def apply(self, repository: str, patch: bytes, /) -> None:
        """Apply a patch to the files of a repository."""
        _apply(repository, patch)

    def release(self, folder: str, /) -> None:
        """Remove the branch and the record of a worktree."""
        record = _read_record(folder)
        if record is not None:
            with suppress(GitFailed, InvalidRequest, OSError):
                _delete_branch(record)
        shutil.rmtree(f"{folder}.new", ignore_errors=True)
        _record_path(folder).unlink(missing_ok=True)


def _apply(repository: str, patch: bytes, *options: str) -> bytes:
    """Run `git apply`, which changes all files of a patch or none, and return its output.

    Raises:
        InvalidRequest: the folder is not a repository.
        Conflict: a change does not fit, or was made already.
    """
    check_repository(repository)
    try:
        with private_repository(repository) as own:
            try:
                return _run(*_APPLY, *options, variables=own, content=patch)
            except GitFailed:
                with suppress(GitFailed):
                    _run(*_APPLY, "--reverse", "--check", variables=own, content=patch)
                    raise Conflict(
                        f"The changes are in {repository} already.",
                        reason_code="changes_applied",
                        repository=repository,
                    ) from None
                raise
    except (GitFailed, OSError) as error:
        raise Conflict(
            f"Nothing was changed: the changes do not fit. {error}",
            reason_code="changes_do_not_fit",
            detail=str(error),
        ) from error


def _fill(folder: Path, source: Repository, branch: str) -> None:
    """Make an empty folder a repository with the files of a commit.

    Raises:
        GitFailed: the commit or a file of it is not there, such as in a partial clone.
        OSError: a file cannot be written.
    """
    where, git = str(folder), folder / ".git"
    form, first = object_format(source.head), f"--initial-branch={branch}"
    run_git("init", "--quiet", "--template=", form, first, ".", folder=where)
    (git / "objects" / "info").mkdir(exist_ok=True)
    (git / "objects" / "info" / "alternates").write_text(f"{source.objects}\n", encoding="utf-8")
    with suppress(FileNotFoundError):  # its history ends there
        shallow = open_without_links(f"{source.git_folder}/shallow", os.O_RDONLY)
        with os.fdopen(shallow, "rb") as file:
            (git / "shallow").write_bytes(file.read(_MAX_SHALLOW_BYTES))
    own = {"GIT_DIR": str(git), "GIT_WORK_TREE": where}
    run = partial(_run, variables=own, only=(source.folder,))
    for name, value in (("user.name", "Larkspur"), ("user.email", "larkspur@localhost")):
        run("config", name, value)
    run("update-ref", f"refs/heads/{branch}", source.head)
    run("reset", "--quiet", "--hard")


def _stage(folder: str, own: Mapping[str, str], base: str) -> tuple[str, ...]:
    """Put the files of a worktree into the index; return sentences about omissions.

    Repositories in the worktree are left out, and not entered: git would run the programs that they
    configure. The submodules of the commit stay unchanged.
    """
    _run("read-tree", base, variables=own)
    submodules = _submodules(own)
    _change_index(own, [_REMOVED + _no_object(base) + b"\t" + path for path in submodules])
    large = list(_large_files(folder))
    left_out = [f"larger than {format_size(MAX_FILE_BYTES)}: {_named(large)}"] if large else []
    patterns = [":(top)", *(f":(top,exclude,literal){path}" for path in large)]
    add = ("add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    try:
        _run(*add, variables=own, content=os.fsencode("\0".join(patterns)))
    except GitFailed as error:
        if error.code != _SOME_FAILED:
            raise
        left_out.append(str(error))
    inner = _submodules(own)
    _change_index(own, [_REMOVED + _no_object(base) + b"\t" + path for path in inner])
    if new := sorted(os.fsdecode(path) for path in inner.keys() - submodules.keys()):
        left_out.append(f"repositories of their own: {_named(new)}")
    _change_index(own, [entry + b"\t" + path for path, entry in submodules.items()])
    return tuple(left_out)


def _commit(
    folder: str,
    record: _Record,
    tree: str,
    *,
    own: Mapping[str, str],
    left_out: tuple[str, ...],
) -> WorktreeChanges:
    """Commit a tree to the branch of the repository.

    Raises:
        GitFailed: this is not possible.
        Conflict: somebody else has changed the branch.
    """
    task = Path(folder).name.rpartition(".")[2]
    commit = _line(
        "commit-tree", tree, "-p", record.base, "-m", f"Changes of {task}", variables=own
    )
    ours = {"GIT_DIR": Repository(record.repository, record.base).git_folder}
    before = _branch_commit(record)
    if before and not _is_ours(before, record, own):
        raise Conflict(
            f"The branch {record.branch} was changed by somebody else.",
            reason_code="branch_changed",
            branch=record.branch,
        )
    _run("update-ref", record.reference, commit, before or _zeros(commit), variables=ours)
    names = _run(*_DIFF, "--name-only", "-z", record.base, commit, variables=own)
    header = f"{task} on the branch {record.branch}, from commit {record.base}\n\n".encode()
    try:
        diff = _run(
            *(*_DIFF, *_PATCH, record.base, commit), variables=own, max_bytes=MAX_PATCH_BYTES
        )
    except OutputTooLarge:
        header, diff = b"", b""
    return WorktreeChanges(
        branch=record.branch,
        base=record.base[:_SHORT_HASH],
        commit=commit,
        paths=tuple(os.fsdecode(name) for name in names.split(b"\0") if name),
        patch=header + diff,
        left_out=left_out,
    )


def _delete_branch(record: _Record) -> None:
    check_repository(record.repository)
    before = _branch_commit(record)
    git = Repository(record.repository, record.base).git_folder
    head = Path(git, "HEAD").read_text(encoding="utf-8").strip()
    with private_repository(record.repository, record.objects, record.base) as own:
        if before and head != f"ref: {record.reference}" and _is_ours(before, record, own):
            _run("update-ref", "-d", record.reference, before, variables={"GIT_DIR": git})


def _branch_commit(record: _Record) -> str:
    """Return the commit of a worktree's branch in the repository, "" if it does not exist."""
    git = Repository(record.repository, record.base).git_folder
    try:
        return _line(
            *("rev-parse", "--verify", "--quiet", record.reference), variables={"GIT_DIR": git}
        )
    except GitFailed as error:
        if error.code == 1:
            return ""
        raise


def _is_ours(commit: str, record: _Record, own: Mapping[str, str]) -> bool:
    """Return True for a commit that was made here, of this worktree."""
    shown = _line("log", "-1", "--no-show-signature", "--format=%P %ce", commit, variables=own)
    return shown == f"{record.base} larkspur@localhost"


def _run(
    *arguments: str,
    variables: Mapping[str, str],
    content: bytes = b"",
    max_bytes: int = 0,
    only: Sequence[str] = (),
) -> bytes:
    """Run git, which reaches the folders of the variables and `only` these others."""
    folder = variables.get("GIT_WORK_TREE", variables["GIT_DIR"])
    limit = {"max_bytes": max_bytes} if max_bytes else {}
    reached = (*variables.values(), *only)
    return run_git(
        *arguments, folder=folder, variables=variables, content=content, only=reached, **limit
    )


def _line(*arguments: str, variables: Mapping[str, str]) -> str:
    return _run(*arguments, variables=variables).decode("utf-8").strip()


def _submodules(own: Mapping[str, str]) -> dict[bytes, bytes]:
    """Return the submodules in the index: path and `mode hash stage`."""
    rows = _run("ls-files", "--stage", "-z", variables=own).split(b"\0")
    found = (row.split(b"\t", 1) for row in rows if row.startswith(_SUBMODULE))
    return {path: entry for entry, path in found}


def _change_index(own: Mapping[str, str], entries: Sequence[bytes]) -> None:
    if entries:
        content = b"".join(entry + b"\0" for entry in entries)
        _run("update-index", "-z", "--index-info", variables=own, content=content)


def _large_files(folder: str) -> Iterator[str]:
    """Yield the paths of files that are too large, relative to the folder."""
    for where, folders, names, opened in os.fwalk(folder):  # follows no link, at no moment
        folders[:] = [name for name in folders if name != ".git"]
        for name in names:
            with suppress(OSError):
                if os.stat(name, dir_fd=opened, follow_symlinks=False).st_size > MAX_FILE_BYTES:
                    yield os.path.relpath(f"{where}/{name}", folder)


def _named(paths: Iterable[str]) -> str:
    shown = list(paths)
    more = len(shown) - _MAX_NAMED
    return ", ".join(shown[:_MAX_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _zeros(commit: str) -> str:
    return "0" * len(commit)


def _no_object(commit: str) -> bytes:
    return _zeros(commit).encode()


def _record_path(folder: str) -> Path:
    return Path(f"{folder}.json")


def _write_record(folder: str, record: _Record) -> None:
    new = Path(f"{folder}.json.new")
    new.write_bytes(msgspec.json.encode(record))
    new.replace(_record_path(folder))


def _read_record(folder: str) -> _Record | None:
    try:
        return msgspec.json.decode(_record_path(folder).read_bytes(), type=_Record)
    except (OSError, msgspec.DecodeError):
        return None
