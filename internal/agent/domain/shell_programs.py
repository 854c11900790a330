"""What is known about programs: which run other programs, and which of their words are dangerous.

A wildcard rule never covers a program or a word that counts here; the options are listed in
`shell_dangers`.
"""

import re
from collections.abc import Sequence

from internal.agent.domain.shell_dangers import ANYWHERE, DANGERS, SAFE_SED, Danger, names
from internal.agent.domain.shell_words import Word

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
