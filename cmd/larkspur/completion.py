"""Completion for shells: the commands, their second words, and the options."""

import sys
from collections.abc import Iterable, Mapping

_SECOND: Mapping[str, str] = {
    "sessions": "list show export rm rename",
    "config": "show path",
    "events": "schema",
    "pair": "list remove",
    "rules": "list remove",
    "completion": "bash zsh fish",
}

_BASH = """\
# bash completion for larkspur, to be put into
# ~/.local/share/bash-completion/completions/larkspur
_larkspur() {
    local word=${COMP_WORDS[COMP_CWORD]}
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "@OPTIONS@" -- "$word"))
    elif ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "@COMMANDS@" -- "$word"))
    else
        case ${COMP_WORDS[1]} in
@CASES@
            *) COMPREPLY=($(compgen -f -- "$word")) ;;
        esac
    fi
}
complete -o filenames -F _larkspur larkspur
"""
_BASH_CASE = '            {name}) COMPREPLY=($(compgen -W "{words}" -- "$word")) ;;'

_ZSH = """\
#compdef larkspur
# zsh completion for larkspur: larkspur completion zsh > a folder of your $fpath, as _larkspur
_larkspur() {
    if [[ $PREFIX == -* ]]; then
        compadd -- @OPTIONS@
    elif ((CURRENT == 2)); then
        compadd -- @COMMANDS@
    else
        case $words[2] in
@CASES@
            *) _files ;;
        esac
    fi
}
_larkspur "$@"
"""
_ZSH_CASE = "            {name}) compadd -- {words} ;;"

_FISH = """\
# fish completion for larkspur: larkspur completion fish > ~/.config/fish/completions/larkspur.fish
complete -c larkspur -n __fish_use_subcommand -a "@COMMANDS@"
@CASES@
@OPTIONS@
"""
_FISH_CASE = 'complete -c larkspur -f -n "__fish_seen_subcommand_from {name}" -a "{words}"'
_FISH_OPTION = "complete -c larkspur -l {name}"


def print_completion(shell: str, commands: Iterable[str], options: Iterable[str]) -> int:
    """Print the completion of a shell."""
    text, case = {
        "bash": (_BASH, _BASH_CASE),
        "zsh": (_ZSH, _ZSH_CASE),
        "fish": (_FISH, _FISH_CASE),
    }[shell]
    cases = "\n".join(case.format(name=name, words=words) for name, words in _SECOND.items())
    listed = " ".join(options)
    if shell == "fish":
        names = [name.removeprefix("--") for name in listed.split() if name.startswith("--")]
        listed = "\n".join(_FISH_OPTION.format(name=name) for name in names)
    filled = text.replace("@CASES@", cases).replace("@COMMANDS@", " ".join(commands))
    sys.stdout.write(filled.replace("@OPTIONS@", listed))
    return 0
