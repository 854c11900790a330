"""What is known about programs: which run other programs, and which options make them dangerous.

A wildcard rule never covers a word named here. The tables are not a complete list of what a program
can do, and need not be: a rule allows a program because a person trusts it, the tables only keep
`git log *` from meaning "any program".
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from internal.agent.domain.shell_words import Word


def _names(*lines: str) -> frozenset[str]:
    return frozenset(name for line in lines for name in line.split())


_SHELLS = _names("sh bash dash zsh ksh mksh ash fish csh tcsh rbash")
INTERPRETERS = _SHELLS | _names(
    "pwsh powershell cmd",
    "python pypy ipython perl ruby irb node nodejs lua luajit php tclsh wish rscript guile",
    "osascript awk gawk mawk nawk groovy scala julia elixir erl racket",
)
WRAPPERS = _names(
    "sudo doas su pkexec runuser env nohup nice ionice chrt timeout gtimeout time xargs",
    "command builtin exec eval source . coproc setsid stdbuf taskset flock watch strace ltrace",
    "parallel perf sqlite psql mysql mariadb",
    "script unbuffer expect ssh chroot unshare nsenter systemd-run at batch crontab trap alias",
    "busybox toybox hash enable export declare typeset readonly local set shopt unset let complete",
    "bind mapfile readarray vi vim view nvim ex ed emacs emacsclient nano less more most pager man",
    "info gdb lldb dbus-run-session firejail bwrap rlwrap caffeinate proot fakeroot run-parts",
    "start-stop-daemon entr screen tmux dtach npx bunx uvx pipx pnpx ld-linux ld-musl",
    "setpriv capsh cgexec numactl catchsegv valgrind rr faketime ccache distcc direnv dotenv",
)
_TEXT_RUNNERS = _SHELLS | _names("eval trap ssh su watch parallel script")
_VERSION = re.compile(r"(?<=[a-z])[-.\d]+(?:x86[-_]64|aarch64)?(?:\.so(?:\.\d+)?)?$|\.exe$")


class _Danger(NamedTuple):
    short: str = ""  # letters, alone or in a cluster such as -xzf
    long: frozenset[str] = frozenset()  # names without dashes; an abbreviation counts as the name
    pattern: str = r"(?!)"  # whole words, wherever they stand
    verbs: str = r"(?!)"  # whole words where the first operand may stand


# Options that make nearly any program that knows them run another one.
_ANYWHERE = _names(
    "exec exec-path exec-batch command eval rsh rsync-path pre pager editor upload-pack",
    "receive-pack to-command checkpoint-action use-compress-program compress-program init-script",
    "script-shell shell wrapper strip-program unzip-command open-files-in-pager call",
)
_SAFE_SED = re.compile(
    r"(?:\d+|\$)?(?:,(?:\d+|\$))?[pdq=]|/[^/\\\n]*/[pd]"
    r"|(?:\d+(?:,\d+)?)?s(?P<mark>[/|,#:])"
    r"(?:(?!(?P=mark))[^\\\n]|\\[^\n])*(?P=mark)(?:(?!(?P=mark))[^\\\n]|\\[^\n])*(?P=mark)[gpI\d]*"
)
_EXPRESSION = r"(?=[^\[]*\[)(?=[^$`]*[$`]).*"  # a subscript is evaluated, also from a quoted string
_RUNS_CODE = "run|exec|x|tool|dlx|create|init|explore|config|set|generate|install|test"
_DANGERS: dict[str, _Danger] = {
    "git": _Danger(
        "cCxOou",
        _names(
            "config config-env git-dir work-tree template output ext-diff extcmd textconv",
            "sendmail-cmd namespace super-prefix",
        ),
        r"foreach|run|(?:ext|fd)::.*",
        r"config|filter-branch|filter-repo|difftool|mergetool|daemon|instaweb|credential.*"
        r"|send-email|web--browse|gui|citool|hook|http-backend|shell",
    ),
    "find": _Danger(
        pattern=r"-(?:exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls)|-files0-from"
    ),
    "fd": _Danger("xX"),
    "fdfind": _Danger("xX"),
    "rg": _Danger("z", _names("hostname-bin search-zip")),
    "sort": _Danger("oTS", _names("output temporary-directory files0-from")),
    "uniq": _Danger(),
    "shuf": _Danger("o", _names("output")),
    "split": _Danger("", _names("filter additional-suffix")),
    "tree": _Danger("oR"),
    "iconv": _Danger("o", _names("output")),
    "tar": _Danger(
        "IFPT",
        _names("info-script new-volume-script rmt-command rsh-command files-from absolute-names"),
        r"[^/]+:.*",
        r"\w*[IFPT]\w*",
    ),
    "cpio": _Danger("IO", _names("rsh-command")),
    "zip": _Danger("TO", _names("test")),
    "sed": _Danger("iefsl", _names("in-place expression file separate line-length")),
    "rsync": _Danger("eM", _names("remote-option daemon config files-from remove-source-files")),
    "scp": _Danger("SoFD"),
    "sftp": _Danger("SobFD"),
    "curl": _Danger(
        "oOKTJ", _names("output output-dir remote-name config upload-file remote-header-name")
    ),
    "wget": _Danger(
        "OPoaei",
        _names("output-document output-file append-output execute input-file config"),
        r".*post-file.*|.*use-askpass.*",
    ),
    "make": _Danger(
        "fCIE",
        _names("file makefile directory include-dir environment-overrides"),
        r"\w+[:+?!]*=.*",
    ),
    "npm": _Danger("c", _names("node-options prefix"), verbs=_RUNS_CODE),
    "pnpm": _Danger("cC", _names("dir"), verbs=_RUNS_CODE),
    "yarn": _Danger("", _names("cwd"), verbs=_RUNS_CODE),
    "bun": _Danger("e", _names("preload"), verbs=_RUNS_CODE),
    "deno": _Danger(verbs=_RUNS_CODE),
    "uv": _Danger("", _names("directory project"), verbs=_RUNS_CODE),
    "poetry": _Danger("C", _names("directory"), verbs=_RUNS_CODE),
    "go": _Danger(
        pattern=r"--?(?:exec|toolexec|vettool|overlay|modfile)(?:=.*)?",
        verbs="run|generate|env|tool",
    ),
    "cargo": _Danger("Z", _names("config"), r"\+.*", "run|install|x.*"),
    "gcc": _Danger("B", frozenset(), r"@.*|-specs=.*|-fplugin.*|-wrapper"),
    "docker": _Danger(verbs=r"run|exec|create|build|buildx|cp|compose|plugin"),
    "podman": _Danger(verbs=r"run|exec|create|build|cp|compose|unshare"),
    "kubectl": _Danger(verbs=r"exec|run|cp|debug|edit|apply|plugin|config"),
    "ip": _Danger("b", frozenset(), r"netns|vrf|exec"),
    "date": _Danger("sf", _names("set file")),
    "jq": _Danger("fL", _names("from-file")),
    "yq": _Danger("i", _names("inplace")),
    "file": _Danger("Cm", _names("compile magic-file")),
    "apt": _Danger("oc", _names("option config-file")),
    "apt-get": _Danger("oc", _names("option config-file")),
    "tcpdump": _Danger("zwFr"),
    "printf": _Danger("v", frozenset(), _EXPRESSION),
    "read": _Danger(pattern=_EXPRESSION),
    "test": _Danger("vR", frozenset(), _EXPRESSION),
    "[": _Danger("vR", frozenset(), _EXPRESSION),
}
_NO_DANGER = _Danger()
_DURATION = re.compile(r"\d+(?:\.\d+)?[smhd]?")


def program_name(text: str) -> str:
    """The program a word runs, without its folder, its version and the case of its letters."""
    return _VERSION.sub("", text.replace("\\", "/").rpartition("/")[2].casefold())


def runs_others(name: str) -> bool:
    """Whether a program (by `program_name`) exists to run what its arguments say."""
    return name in INTERPRETERS or name in WRAPPERS


def runs_text(words: Sequence[Word]) -> bool:
    """Whether a word of a command is a program that reads another word as shell commands."""
    return any(program_name(word.text) in _TEXT_RUNNERS for word in words)


def dangers(words: Sequence[Word]) -> list[int]:
    """Places of the words that no wildcard covers. Over-careful rather than complete."""
    name = program_name(words[0].text)
    danger = _DANGERS.get(name, _NO_DANGER)
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
    return sorted(found)


def _option(text: str, danger: _Danger) -> bool:
    if not text.startswith("-"):
        return False
    if text.startswith("--"):
        given = text[2:].partition("=")[0]
        names = danger.long | _ANYWHERE
        return bool(given) and any(name.startswith(given) for name in names)
    return any(letter in danger.short for letter in text[1:])


def _unsafe_scripts(words: Sequence[Word]) -> list[int]:
    """The script of sed, unless it is one line that only prints, deletes or substitutes."""
    places = [p for p, word in enumerate(words[1:], 1) if not word.text.startswith("-")][:1]
    return [
        place
        for place in places
        if words[place].kind != "plain" or not _SAFE_SED.fullmatch(words[place].text)
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
