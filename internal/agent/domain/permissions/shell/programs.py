"""Programs: which of them run other programs, and which of their words no wildcard may cover.

The table is deliberately too strict rather than complete: a command that is listed without need
only asks a person once more.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from internal.agent.domain.permissions.shell.words import Word


def split_names(*lines: str) -> frozenset[str]:
    """Return the words of the lines."""
    return frozenset(name for line in lines for name in line.split())


class UnsafeWords(NamedTuple):
    """Words of one program that no wildcard covers."""

    short: str = ""  # option letters, alone or combined as in -xzf
    long: frozenset[str] = frozenset()  # no dashes; matches abbreviations
    pattern: str = r"(?!)"  # whole words, at any index
    verbs: str = r"(?!)"  # whole words that may be the first operand


def _all_except(verbs: str) -> str:
    """Return a pattern for every verb except these: too many others run code to list them."""
    return rf"(?!-)(?!(?:{verbs})$).+"


# Options that make almost every program that has them run another program or load code.
UNSAFE_LONG_OPTIONS = split_names(
    "exec exec-path exec-batch command eval rsh rsync-path pre pager editor upload-pack",
    "receive-pack to-command checkpoint-action use-compress-program compress-program init-script",
    "script-shell shell wrapper strip-program unzip-command open-files-in-pager call",
    "diff-program diff-cmd diff3-cmd merge-cmd editor-cmd plugin pipe browser viewer",
)
SAFE_SED = re.compile(
    r"(?:\d+|\$)?(?:,(?:\d+|\$))?[pdq=]|/[^/\\\n]*/[pd]"
    r"|(?:\d+(?:,\d+)?)?s(?P<mark>[/|,#:])"
    r"(?:(?!(?P=mark))[^\\\n]|\\[^\n])*(?P=mark)(?:(?!(?P=mark))[^\\\n]|\\[^\n])*(?P=mark)[gpI\d]*"
)
_EXPRESSION = r"(?=[^\[]*\[)(?=[^$`]*[$`]).*"  # a subscript is evaluated, also from a quoted string
_OUTSIDE_PATH = r"/.*|(?:.*/)?\.\.(?:/.*)?"
_RUNS_CODE = "run|exec|x|tool|dlx|create|init|explore|config|set|generate|install|test"
_GIT = UnsafeWords(
    "cCxOou",
    split_names(
        "config config-env git-dir work-tree template output output-directory ext-diff extcmd",
        "textconv filters sendmail-cmd namespace super-prefix export-marks unsafe-paths in-place",
        "separate-git-dir",
    ),
    r"foreach|run|visualize|view|(?:[^=]*=)?(?:ext|fd)::.*",
    r"config|filter-branch|filter-repo|difftool|mergetool|daemon|instaweb|credential.*"
    r"|send-email|web--browse|gui|citool|hook|http-backend|shell|remote-.*|maintenance"
    r"|fast-import|cvsserver|submodule--helper",
)
_C = UnsafeWords(
    "B",
    frozenset(),
    r"@.*|-specs=.*|-fplugin.*|-wrapper|-Wl,.*|-X(?:linker|clang|assembler)|-fuse-ld.*|-load",
)
_PIP = UnsafeWords(
    "", split_names("python log"), verbs=_all_except("list|show|freeze|check|index|hash|inspect")
)
_NETCAT = UnsafeWords("ec", split_names("sh-exec lua-exec"))
_JUST = UnsafeWords(
    "f", split_names("file justfile makefile rakefile noxfile taskfile dir working-directory")
)

UNSAFE_WORDS: dict[str, UnsafeWords] = {
    "git": _GIT,
    "find": UnsafeWords(
        pattern=r"-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)|-files0-from"
    ),
    "fd": UnsafeWords("xX"),
    "fdfind": UnsafeWords("xX"),
    "rg": UnsafeWords("z", split_names("hostname-bin search-zip")),
    "fzf": UnsafeWords("", split_names("preview bind listen")),
    "sort": UnsafeWords("oTS", split_names("output temporary-directory files0-from")),
    "uniq": UnsafeWords(),
    "shuf": UnsafeWords("o", split_names("output")),
    "sdiff": UnsafeWords("o", split_names("output")),
    "split": UnsafeWords("", split_names("filter additional-suffix")),
    "tree": UnsafeWords("oR"),
    "iconv": UnsafeWords("o", split_names("output")),
    "tar": UnsafeWords(
        "IFPT",
        split_names(
            "info-script new-volume-script rmt-command rsh-command files-from absolute-names"
        )
        | split_names("index-file"),
        r"[^/]+:.*",
        r"\w*[IFPT]\w*",
    ),
    "cpio": UnsafeWords("IOF", split_names("rsh-command file")),
    "zip": UnsafeWords("TO", split_names("test")),
    "sed": UnsafeWords("iefsl", split_names("in-place expression file separate line-length")),
    "rsync": UnsafeWords(
        "eM",
        split_names(
            "remote-option daemon config files-from remove-source-files log-file write-batch"
        ),
    ),
    "scp": UnsafeWords("SoFDJ"),
    "sftp": UnsafeWords("SobFDJ"),
    "nc": _NETCAT,
    "ncat": _NETCAT,
    "netcat": _NETCAT,
    "curl": UnsafeWords(
        "oOKTJcDn",
        split_names("output output-dir remote-name remote-name-all config upload-file")
        | split_names(
            "remote-header-name cookie-jar dump-header trace trace-ascii stderr libcurl hsts"
        )
        | split_names(
            "alt-svc etag-save netrc netrc-file netrc-optional engine unix-socket variable"
        )
        | split_names("abstract-unix-socket proto-default"),
        r"(?:-\w*)?[@<].*|[^:/]*=[@<].*|[^:/=]+@[^:]*|.*%output\{.*|(?i:file):.*",
    ),
    "wget": UnsafeWords(
        "OPoaei",
        split_names("output-document output-file append-output execute input-file config body-file")
        | split_names("warc-file save-cookies rejected-log hsts-file"),
        r".*post-file.*|.*use-askpass.*",
    ),
    "make": UnsafeWords(
        "fCIE",
        split_names("file makefile directory include-dir environment-overrides"),
        r"(?!-)[^=]*=.*",
    ),
    "ninja": UnsafeWords("fC"),
    "cmake": UnsafeWords(
        "PECS", split_names("build install preset"), r"-D.*(?:LAUNCHER|COMPILER|LINKER|PROGRAM).*"
    ),
    "just": _JUST,
    "rake": _JUST,
    "nox": _JUST,
    "task": _JUST,
    "npm": UnsafeWords(
        "cC",
        split_names("node-options prefix userconfig globalconfig git onload-script"),
        verbs=_all_except(
            "ls|list|la|ll|view|info|show|outdated|why|explain|root|ping|whoami|search"
        ),
    ),
    "pnpm": UnsafeWords(
        "cC", split_names("dir config"), verbs=_all_except("ls|list|la|ll|why|outdated|licenses")
    ),
    "yarn": UnsafeWords(
        "", split_names("cwd use-yarnrc"), verbs=_all_except("list|info|why|outdated|versions")
    ),
    "bun": UnsafeWords("er", split_names("preload require"), verbs=_all_except("outdated|why")),
    "deno": UnsafeWords(verbs=_all_except("info|lint|check|doc|types")),
    "uv": UnsafeWords(
        "", split_names("directory project config-file python"), verbs=_all_except("tree|version")
    ),
    "poetry": UnsafeWords(
        "C", split_names("directory project"), verbs=_all_except("show|check|version|search")
    ),
    "pip": _PIP,
    "bundle": UnsafeWords(verbs=_all_except("list|show|info|outdated|check")),
    "composer": UnsafeWords(
        "d", split_names("working-dir"), verbs=_all_except("show|info|why|outdated|licenses")
    ),
    "gem": UnsafeWords(verbs=_all_except("list|search|info|which|outdated")),
    "mvn": UnsafeWords("fs", split_names("file settings"), r"[\w.-]+:[\w.:-]+"),
    "gradle": UnsafeWords(
        "Ibpcg", split_names("project-dir build-file settings-file include-build")
    ),
    "go": UnsafeWords(
        pattern=r"--?(?:exec|toolexec|vettool|overlay|modfile|ldflags|gcflags|gccgoflags|asmflags"
        r"|compiler|pkgdir|C|o)(?:=.*)?",
        verbs="run|generate|env|tool",
    ),
    "cargo": UnsafeWords(
        "ZC", split_names("config manifest-path"), r"\+.*|.*linker=.*", "r|run|install|x.*|rustc"
    ),
    "gcc": _C,
    "g++": _C,
    "cc": _C,
    "c++": _C,
    "clang": _C,
    "clang++": _C,
    "javac": UnsafeWords(pattern=r"@.*|-J.*|--?processor.*"),
    "pytest": UnsafeWords(
        "pco",
        split_names("override-ini pdbcls rootdir confcutdir config-file basetemp"),
        _OUTSIDE_PATH,
    ),
    "mypy": UnsafeWords("", split_names("config-file python-executable install-types")),
    "eslint": UnsafeWords(
        "cfo",
        split_names("config format output-file rulesdir parser resolve-plugins-relative-to"),
    ),
    "prettier": UnsafeWords("", split_names("config plugin-search-dir")),
    "jest": UnsafeWords(
        "c",
        split_names(
            "config testRunner runner globalSetup globalTeardown setupFiles transform reporters"
        )
        | split_names("setupFilesAfterEnv rootDir resolver testEnvironment"),
    ),
    "pandoc": UnsafeWords(
        "FLo",
        split_names("filter lua-filter pdf-engine output extract-media data-dir defaults"),
        r".*\.lua",
    ),
    "gh": UnsafeWords(
        pattern="--", verbs="alias|extensions?|ext|config|codespace|cs|auth|secret|ssh-key|gpg-key"
    ),
    "docker": UnsafeWords(
        "Hc",
        split_names("host context config"),
        r"run|exec|create|build|buildx|cp|compose|plugin|deploy|load|import|start",
    ),
    "docker-compose": UnsafeWords("f", split_names("file"), r"run|exec|create|build|cp|up|start"),
    "podman": UnsafeWords(pattern=r"run|exec|create|build|cp|compose|unshare|play|kube|start"),
    "kubectl": UnsafeWords(
        "",
        split_names("kubeconfig"),
        verbs=r"exec|run|cp|debug|edit|apply|plugin|config|create|replace|patch|set|attach|proxy"
        r"|port-forward|rollout|krew",
    ),
    "terraform": UnsafeWords(pattern=r"-chdir.*", verbs="apply|console|destroy|import|init"),
    "aws": UnsafeWords(verbs="configure|ssm"),
    "systemctl": UnsafeWords(
        "HM",
        split_names("host machine root"),
        verbs=r"edit|link|enable|start|restart|revert|set-environment|import-environment",
    ),
    "svn": UnsafeWords("", split_names("config-option config-dir")),
    "hg": UnsafeWords("R", split_names("config cwd repository")),
    "ip": UnsafeWords("b", frozenset(), r"netns|vrf|exec"),
    "date": UnsafeWords("sf", split_names("set file"), r"[\d.]+"),
    "hostname": UnsafeWords("Fb", split_names("file boot"), r"(?!-).+"),
    "history": UnsafeWords("acdnprsw"),
    "jq": UnsafeWords("fL", split_names("from-file library-path")),
    "yq": UnsafeWords("is", split_names("inplace split-exp from-file")),
    "file": UnsafeWords("Cm", split_names("compile magic-file")),
    "openssl": UnsafeWords(
        pattern=r"--?(?:engine|provider|provider-path|config|out|keyout|writerand)", verbs="engine"
    ),
    "patch": UnsafeWords("eo", split_names("ed output")),  # an ed script is executed
    "apt": UnsafeWords("oc", split_names("option config-file")),
    "apt-get": UnsafeWords("oc", split_names("option config-file")),
    "dpkg": UnsafeWords("i", split_names("pre-invoke post-invoke install root admindir instdir")),
    "rpm": UnsafeWords(
        "EDiUF", split_names("define load macros rcfile predefine install upgrade freshen")
    ),
    "tcpdump": UnsafeWords("zwFr"),
    "cd": UnsafeWords(pattern=".+"),  # later parts run in another folder
    "pushd": UnsafeWords(pattern=".+"),
    "popd": UnsafeWords(pattern=".+"),
    "printf": UnsafeWords("v", frozenset(), _EXPRESSION),
    "read": UnsafeWords(pattern=rf"{_EXPRESSION}|(?!-)(?![a-z_][a-z0-9_]*$).+"),
    "getopts": UnsafeWords(pattern=_EXPRESSION),
    "wait": UnsafeWords("p", frozenset(), _EXPRESSION),
    "test": UnsafeWords("vR", frozenset(), _EXPRESSION),
    "[": UnsafeWords("vR", frozenset(), _EXPRESSION),
}


SHELLS = split_names("sh bash dash zsh ksh mksh ash fish csh tcsh rbash yash nu xonsh elvish")
INTERPRETERS = SHELLS | split_names(
    "pwsh powershell cmd",
    "python pypy ipython perl ruby irb node nodejs lua luajit php tclsh wish rscript guile",
    "osascript awk gawk mawk nawk groovy scala julia elixir erl racket",
    "java jshell dotnet swift ocaml ghci octave gnuplot r m4 dc tsx ts-node nix-shell",
)
WRAPPERS = split_names(
    "sudo doas su pkexec runuser env nohup nice ionice chrt timeout gtimeout time xargs",
    "command builtin exec eval source . coproc setsid stdbuf taskset flock watch strace ltrace",
    "parallel perf sqlite psql mysql mariadb",
    "script unbuffer expect spawn ssh chroot unshare nsenter systemd-run at batch crontab trap",
    "busybox toybox hash enable export declare typeset readonly local set shopt unset let complete",
    "bind mapfile readarray vi vim view nvim ex ed emacs emacsclient nano less more most pager man",
    "info gdb lldb dbus-run-session firejail bwrap rlwrap caffeinate proot fakeroot run-parts",
    "start-stop-daemon entr screen tmux dtach npx bunx uvx pipx pnpx ld-linux ld-musl",
    "setpriv capsh cgexec numactl catchsegv valgrind rr faketime ccache distcc direnv dotenv",
    "alias fc jobs compgen setarch arch linux32 linux64 logsave choom prlimit runcon sg newgrp",
    "run0 chpst setuidgid softlimit socat ldd sshpass autossh mosh pdsh pssh torsocks proxychains",
    "hyperfine watchexec nodemon xvfb-run eatmydata cpulimit uftrace bpftrace wine mise asdf",
    "xdg-open open gio mail mutt ftp w3m lynx gvim rvim vimdiff mc busctl dbus-send gdbus qdbus",
)
_TEXT_RUNNERS = SHELLS | split_names("eval trap ssh su watch parallel script hyperfine sg expect")
_VERSION = re.compile(r"(?<=[a-z])[-.\d]+(?:x86[-_]64|aarch64)?(?:\.so(?:\.\d+)?)?$|\.exe$")
_NO_UNSAFE_WORDS = UnsafeWords()
_INFO_OPTIONS = frozenset({"--version", "--help"})
_STDIN_NAMES = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_MODULE_WORDS = 2  # `python -m pytest …` is checked as `pytest …`
_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")


def program_name(text: str) -> str:
    """Return the program that a word runs: without folder and version, in lower case."""
    name = text.replace("\\", "/").rpartition("/")[2].casefold()
    return name if is_runner(name) else _VERSION.sub("", name)


def is_runner(name: str) -> bool:
    """Return True if the program runs the commands or code in its arguments."""
    return name in INTERPRETERS or name in WRAPPERS


def runs_shell_text(words: Sequence[Word]) -> bool:
    """Return True if a word of the command is a program that runs another word as shell code."""
    return any(program_name(word.text) in _TEXT_RUNNERS for word in words)


def changes_directory(words: tuple[Word, ...]) -> bool:
    """Return True if the command changes the folder in which later parts run."""
    heads = (*words[:1], *unwrap(words)[:1])
    return any(word.text in {"cd", "pushd", "popd"} for word in heads)


def reads_commands_from_input(words: Sequence[Word]) -> bool:
    """Return True if the command is a shell that reads its commands from standard input."""
    texts = [word.text for word in words[1:]]
    if program_name(words[0].text) not in SHELLS or not _INFO_OPTIONS.isdisjoint(texts):
        return False
    letters = "".join(text for text in texts if re.fullmatch(r"[-+]\w+", text))
    operands = [word for word in words[1:] if word.text[:1] not in {"-", "+"} or word.text == "-"]
    if "c" in letters:
        return False
    from_input = not operands or operands[0].text in _STDIN_NAMES or operands[0].kind == "unknown"
    return from_input or "s" in letters


def find_unsafe_words(words: Sequence[Word]) -> list[int]:
    """Return the indexes of the words that no wildcard covers."""
    name = program_name(words[0].text)
    skipped = 0
    if name in INTERPRETERS and len(words) > _MODULE_WORDS and words[1].text == "-m":
        skipped, words, name = _MODULE_WORDS, words[_MODULE_WORDS:], words[_MODULE_WORDS].text
    unsafe = UNSAFE_WORDS.get(name, _NO_UNSAFE_WORDS)
    found = [
        index
        for index, word in enumerate(words[1:], start=1)
        if _is_unsafe_option(word.text, unsafe)
        or re.fullmatch(unsafe.pattern, word.text, re.DOTALL)
    ]
    found.extend(p for p in operand_indexes(words) if re.fullmatch(unsafe.verbs, words[p].text))
    if name == "sed":
        found.extend(_unsafe_sed_scripts(words))
    if name in {"uniq", "xxd"}:  # they write to their second operand
        operands = [p for p, word in enumerate(words[1:], 1) if not word.text.startswith("-")]
        found.extend(operands[1:])
    return sorted(skipped + index for index in found)


def _is_unsafe_option(text: str, unsafe: UnsafeWords) -> bool:
    if not text.startswith("-"):
        return False
    if text.startswith("--"):
        given = text[2:].partition("=")[0]
        return bool(given) and any(
            name.startswith(given) for name in unsafe.long | UNSAFE_LONG_OPTIONS
        )
    return any(letter in unsafe.short for letter in text[1:])


def _unsafe_sed_scripts(words: Sequence[Word]) -> list[int]:
    """Return the index of a sed script that does more than print, delete or substitute."""
    indexes = [p for p, word in enumerate(words[1:], 1) if not word.text.startswith("-")][:1]
    return [
        index
        for index in indexes
        if words[index].kind != "plain" or not SAFE_SED.fullmatch(words[index].text)
    ]


def unwrap(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the command inside wrappers such as `time`, or `words` itself.

    Only the plainest forms are unwrapped: `command X`, `env X`, `nice [-n N] X`, `nohup X`,
    `time X`, `timeout DURATION X`.
    """
    while skipped := _wrapper_length(words):
        words = words[skipped:]
    return words


def _wrapper_length(words: tuple[Word, ...]) -> int:
    texts = [word.text if word.kind == "plain" else "-" for word in words[:4]]
    match texts:
        case ["nice", "-n", level, _] if re.fullmatch(r"\d+", level):
            return 3
        case ["timeout", duration, inner, *_] if _DURATION.fullmatch(duration):
            return 2 if _is_program(inner) else 0
        case ["command" | "env" | "nice" | "nohup" | "time", inner, *_]:
            return 1 if _is_program(inner) else 0
        case _:
            return 0


def _is_program(text: str) -> bool:
    return not text.startswith("-") and "=" not in text


def operand_indexes(words: Sequence[Word]) -> list[int]:
    """Return the indexes where the first operand may be: an option may or may not take a value.

    For `git -C folder push` these are 1, 2 and 3.
    """
    options = [word.text.startswith("-") for word in words]
    indexes = [1]
    for index in range(2, len(options)):
        if not (options[1] and (options[index - 1] or options[index - 2])):
            break
        indexes.append(index)
    return indexes if len(words) > 1 else []
