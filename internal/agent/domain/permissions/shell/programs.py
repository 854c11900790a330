"""What is known about programs: which run other programs, and which of their words are dangerous.

A wildcard rule never covers a program or a word that counts here; the options are listed in
`shell_dangers`.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from internal.agent.domain.permissions.shell.words import Word


def names(*lines: str) -> frozenset[str]:
    """Return the words of some lines."""
    return frozenset(name for line in lines for name in line.split())


class Danger(NamedTuple):
    """The words of a program that no wildcard covers."""

    short: str = ""  # letters, alone or in a cluster such as -xzf
    long: frozenset[str] = frozenset()  # names without dashes; an abbreviation counts as the name
    pattern: str = r"(?!)"  # whole words, wherever they stand
    verbs: str = r"(?!)"  # whole words where the first operand may stand


def _but(verbs: str) -> str:
    """Any verb but these: what runs code is the rule, and has too many names to list."""
    return rf"(?!-)(?!(?:{verbs})$).+"


# Options that make nearly any program that knows them run another one, or load code of a file.
ANYWHERE = names(
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
_ELSEWHERE = r"/.*|(?:.*/)?\.\.(?:/.*)?"
_RUNS_CODE = "run|exec|x|tool|dlx|create|init|explore|config|set|generate|install|test"
_GIT = Danger(
    "cCxOou",
    names(
        "config config-env git-dir work-tree template output output-directory ext-diff extcmd",
        "textconv filters sendmail-cmd namespace super-prefix export-marks unsafe-paths in-place",
        "separate-git-dir",
    ),
    r"foreach|run|visualize|view|(?:[^=]*=)?(?:ext|fd)::.*",
    r"config|filter-branch|filter-repo|difftool|mergetool|daemon|instaweb|credential.*"
    r"|send-email|web--browse|gui|citool|hook|http-backend|shell|remote-.*|maintenance"
    r"|fast-import|cvsserver|submodule--helper",
)
_C = Danger(
    "B",
    frozenset(),
    r"@.*|-specs=.*|-fplugin.*|-wrapper|-Wl,.*|-X(?:linker|clang|assembler)|-fuse-ld.*|-load",
)
_PIP = Danger("", names("python log"), verbs=_but("list|show|freeze|check|index|hash|inspect"))
_NETCAT = Danger("ec", names("sh-exec lua-exec"))
_JUST = Danger("f", names("file justfile makefile rakefile noxfile taskfile dir working-directory"))

DANGERS: dict[str, Danger] = {
    "git": _GIT,
    "find": Danger(
        pattern=r"-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)|-files0-from"
    ),
    "fd": Danger("xX"),
    "fdfind": Danger("xX"),
    "rg": Danger("z", names("hostname-bin search-zip")),
    "fzf": Danger("", names("preview bind listen")),
    "sort": Danger("oTS", names("output temporary-directory files0-from")),
    "uniq": Danger(),
    "shuf": Danger("o", names("output")),
    "sdiff": Danger("o", names("output")),
    "split": Danger("", names("filter additional-suffix")),
    "tree": Danger("oR"),
    "iconv": Danger("o", names("output")),
    "tar": Danger(
        "IFPT",
        names("info-script new-volume-script rmt-command rsh-command files-from absolute-names")
        | names("index-file"),
        r"[^/]+:.*",
        r"\w*[IFPT]\w*",
    ),
    "cpio": Danger("IOF", names("rsh-command file")),
    "zip": Danger("TO", names("test")),
    "sed": Danger("iefsl", names("in-place expression file separate line-length")),
    "rsync": Danger(
        "eM",
        names("remote-option daemon config files-from remove-source-files log-file write-batch"),
    ),
    "scp": Danger("SoFDJ"),
    "sftp": Danger("SobFDJ"),
    "nc": _NETCAT,
    "ncat": _NETCAT,
    "netcat": _NETCAT,
    "curl": Danger(
        "oOKTJcDn",
        names("output output-dir remote-name remote-name-all config upload-file")
        | names("remote-header-name cookie-jar dump-header trace trace-ascii stderr libcurl hsts")
        | names("alt-svc etag-save netrc netrc-file netrc-optional engine unix-socket variable")
        | names("abstract-unix-socket proto-default"),
        r"(?:-\w*)?[@<].*|[^:/]*=[@<].*|[^:/=]+@[^:]*|.*%output\{.*|(?i:file):.*",
    ),
    "wget": Danger(
        "OPoaei",
        names("output-document output-file append-output execute input-file config body-file")
        | names("warc-file save-cookies rejected-log hsts-file"),
        r".*post-file.*|.*use-askpass.*",
    ),
    "make": Danger(
        "fCIE",
        names("file makefile directory include-dir environment-overrides"),
        r"(?!-)[^=]*=.*",
    ),
    "ninja": Danger("fC"),
    "cmake": Danger(
        "PECS", names("build install preset"), r"-D.*(?:LAUNCHER|COMPILER|LINKER|PROGRAM).*"
    ),
    "just": _JUST,
    "rake": _JUST,
    "nox": _JUST,
    "task": _JUST,
    "npm": Danger(
        "cC",
        names("node-options prefix userconfig globalconfig git onload-script"),
        verbs=_but("ls|list|la|ll|view|info|show|outdated|why|explain|root|ping|whoami|search"),
    ),
    "pnpm": Danger("cC", names("dir config"), verbs=_but("ls|list|la|ll|why|outdated|licenses")),
    "yarn": Danger("", names("cwd use-yarnrc"), verbs=_but("list|info|why|outdated|versions")),
    "bun": Danger("er", names("preload require"), verbs=_but("outdated|why")),
    "deno": Danger(verbs=_but("info|lint|check|doc|types")),
    "uv": Danger("", names("directory project config-file python"), verbs=_but("tree|version")),
    "poetry": Danger("C", names("directory project"), verbs=_but("show|check|version|search")),
    "pip": _PIP,
    "bundle": Danger(verbs=_but("list|show|info|outdated|check")),
    "composer": Danger("d", names("working-dir"), verbs=_but("show|info|why|outdated|licenses")),
    "gem": Danger(verbs=_but("list|search|info|which|outdated")),
    "mvn": Danger("fs", names("file settings"), r"[\w.-]+:[\w.:-]+"),
    "gradle": Danger("Ibpcg", names("project-dir build-file settings-file include-build")),
    "go": Danger(
        pattern=r"--?(?:exec|toolexec|vettool|overlay|modfile|ldflags|gcflags|gccgoflags|asmflags"
        r"|compiler|pkgdir|C|o)(?:=.*)?",
        verbs="run|generate|env|tool",
    ),
    "cargo": Danger(
        "ZC", names("config manifest-path"), r"\+.*|.*linker=.*", "r|run|install|x.*|rustc"
    ),
    "gcc": _C,
    "g++": _C,
    "cc": _C,
    "c++": _C,
    "clang": _C,
    "clang++": _C,
    "javac": Danger(pattern=r"@.*|-J.*|--?processor.*"),
    "pytest": Danger(
        "pco",
        names("override-ini pdbcls rootdir confcutdir config-file basetemp"),
        _ELSEWHERE,
    ),
    "mypy": Danger("", names("config-file python-executable install-types")),
    "eslint": Danger(
        "cfo",
        names("config format output-file rulesdir parser resolve-plugins-relative-to"),
    ),
    "prettier": Danger("", names("config plugin-search-dir")),
    "jest": Danger(
        "c",
        names("config testRunner runner globalSetup globalTeardown setupFiles transform reporters")
        | names("setupFilesAfterEnv rootDir resolver testEnvironment"),
    ),
    "pandoc": Danger(
        "FLo",
        names("filter lua-filter pdf-engine output extract-media data-dir defaults"),
        r".*\.lua",
    ),
    "gh": Danger(
        pattern="--", verbs="alias|extensions?|ext|config|codespace|cs|auth|secret|ssh-key|gpg-key"
    ),
    "docker": Danger(
        "Hc",
        names("host context config"),
        r"run|exec|create|build|buildx|cp|compose|plugin|deploy|load|import|start",
    ),
    "docker-compose": Danger("f", names("file"), r"run|exec|create|build|cp|up|start"),
    "podman": Danger(pattern=r"run|exec|create|build|cp|compose|unshare|play|kube|start"),
    "kubectl": Danger(
        "",
        names("kubeconfig"),
        verbs=r"exec|run|cp|debug|edit|apply|plugin|config|create|replace|patch|set|attach|proxy"
        r"|port-forward|rollout|krew",
    ),
    "terraform": Danger(pattern=r"-chdir.*", verbs="apply|console|destroy|import|init"),
    "aws": Danger(verbs="configure|ssm"),
    "systemctl": Danger(
        "HM",
        names("host machine root"),
        verbs=r"edit|link|enable|start|restart|revert|set-environment|import-environment",
    ),
    "svn": Danger("", names("config-option config-dir")),
    "hg": Danger("R", names("config cwd repository")),
    "ip": Danger("b", frozenset(), r"netns|vrf|exec"),
    "date": Danger("sf", names("set file"), r"[\d.]+"),
    "hostname": Danger("Fb", names("file boot"), r"(?!-).+"),
    "history": Danger("acdnprsw"),
    "jq": Danger("fL", names("from-file library-path")),
    "yq": Danger("is", names("inplace split-exp from-file")),
    "file": Danger("Cm", names("compile magic-file")),
    "openssl": Danger(
        pattern=r"--?(?:engine|provider|provider-path|config|out|keyout|writerand)", verbs="engine"
    ),
    "patch": Danger("eo", names("ed output")),  # a patch in the form of a script runs in ed
    "apt": Danger("oc", names("option config-file")),
    "apt-get": Danger("oc", names("option config-file")),
    "dpkg": Danger("i", names("pre-invoke post-invoke install root admindir instdir")),
    "rpm": Danger("EDiUF", names("define load macros rcfile predefine install upgrade freshen")),
    "tcpdump": Danger("zwFr"),
    "cd": Danger(pattern=".+"),  # what stands after it runs in a folder that nobody has looked at
    "pushd": Danger(pattern=".+"),
    "popd": Danger(pattern=".+"),
    "printf": Danger("v", frozenset(), _EXPRESSION),
    "read": Danger(pattern=rf"{_EXPRESSION}|(?!-)(?![a-z_][a-z0-9_]*$).+"),
    "getopts": Danger(pattern=_EXPRESSION),
    "wait": Danger("p", frozenset(), _EXPRESSION),
    "test": Danger("vR", frozenset(), _EXPRESSION),
    "[": Danger("vR", frozenset(), _EXPRESSION),
}


SHELLS = names("sh bash dash zsh ksh mksh ash fish csh tcsh rbash yash nu xonsh elvish")
INTERPRETERS = SHELLS | names(
    "pwsh powershell cmd",
    "python pypy ipython perl ruby irb node nodejs lua luajit php tclsh wish rscript guile",
    "osascript awk gawk mawk nawk groovy scala julia elixir erl racket",
    "java jshell dotnet swift ocaml ghci octave gnuplot r m4 dc tsx ts-node nix-shell",
)
WRAPPERS = names(
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
_TEXT_RUNNERS = SHELLS | names("eval trap ssh su watch parallel script hyperfine sg expect")
_VERSION = re.compile(r"(?<=[a-z])[-.\d]+(?:x86[-_]64|aarch64)?(?:\.so(?:\.\d+)?)?$|\.exe$")
_NO_DANGER = Danger()
_ABOUT = frozenset({"--version", "--help"})
_INPUTS = frozenset({"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"})
_MODULE = 2  # `python -m pytest …` is judged as `pytest …`
_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")


def program_name(text: str) -> str:
    """The program a word runs, without its folder, its version and the case of its letters."""
    name = text.replace("\\", "/").rpartition("/")[2].casefold()
    return name if runs_others(name) else _VERSION.sub("", name)


def runs_others(name: str) -> bool:
    """Whether a program exists to run what its arguments say."""
    return name in INTERPRETERS or name in WRAPPERS


def runs_text(words: Sequence[Word]) -> bool:
    """Whether a word of a command is a program that reads another word as shell commands."""
    return any(program_name(word.text) in _TEXT_RUNNERS for word in words)


def changes_folder(words: tuple[Word, ...]) -> bool:
    """Whether a command changes the folder in which the shell runs what follows."""
    heads = (*words[:1], *unwrapped(words)[:1])
    return any(word.text in {"cd", "pushd", "popd"} for word in heads)


def reads_commands(words: Sequence[Word]) -> bool:
    """Whether a command is a shell that takes its program from its input, so nobody can read it."""
    texts = [word.text for word in words[1:]]
    if program_name(words[0].text) not in SHELLS or not _ABOUT.isdisjoint(texts):
        return False
    letters = "".join(text for text in texts if re.fullmatch(r"[-+]\w+", text))
    operands = [word for word in words[1:] if word.text[:1] not in {"-", "+"} or word.text == "-"]
    if "c" in letters:
        return False
    from_input = not operands or operands[0].text in _INPUTS or operands[0].kind == "unknown"
    return from_input or "s" in letters


def dangers(words: Sequence[Word]) -> list[int]:
    """Places of the words that no wildcard covers. Over-careful rather than complete."""
    name = program_name(words[0].text)
    skipped = 0
    if name in INTERPRETERS and len(words) > _MODULE and words[1].text == "-m":
        skipped, words, name = _MODULE, words[_MODULE:], words[_MODULE].text
    danger = DANGERS.get(name, _NO_DANGER)
    found = [
        place
        for place, word in enumerate(words[1:], start=1)
        if _option(word.text, danger) or re.fullmatch(danger.pattern, word.text, re.DOTALL)
    ]
    found.extend(p for p in operand_places(words) if re.fullmatch(danger.verbs, words[p].text))
    if name == "sed":
        found.extend(_unsafe_scripts(words))
    if name in {"uniq", "xxd"}:  # the second operand is the file they write
        operands = [p for p, word in enumerate(words[1:], 1) if not word.text.startswith("-")]
        found.extend(operands[1:])
    return sorted(skipped + place for place in found)


def _option(text: str, danger: Danger) -> bool:
    if not text.startswith("-"):
        return False
    if text.startswith("--"):
        given = text[2:].partition("=")[0]
        return bool(given) and any(name.startswith(given) for name in danger.long | ANYWHERE)
    return any(letter in danger.short for letter in text[1:])


def _unsafe_scripts(words: Sequence[Word]) -> list[int]:
    """The script of sed, unless it is one line that only prints, deletes or substitutes."""
    places = [p for p, word in enumerate(words[1:], 1) if not word.text.startswith("-")][:1]
    return [
        place
        for place in places
        if words[place].kind != "plain" or not SAFE_SED.fullmatch(words[place].text)
    ]


def unwrapped(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The command behind the wrappers that change nothing but when it runs, or `words`.

    Only their plainest forms: `command X`, `env X`, `nice [-n N] X`, `nohup X`, `time X`,
    `timeout DURATION X`.
    """
    while skipped := _skipped(words):
        words = words[skipped:]
    return words


def _skipped(words: tuple[Word, ...]) -> int:
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


def operand_places(words: Sequence[Word]) -> list[int]:
    """Places where the first operand may stand, past options that may or may not take a value.

    `git -C folder push` gives 1, 2 and 3.
    """
    options = [word.text.startswith("-") for word in words]
    places = [1]
    for place in range(2, len(options)):
        if not (options[1] and (options[place - 1] or options[place - 2])):
            break
        places.append(place)
    return places if len(words) > 1 else []
