"""`larkspur completion`: print a shell completion script, made from the registered commands."""

import argparse
import sys
from argparse import Namespace

from internal.channels.cli.commands import registry, start_options
from internal.channels.cli.commands.context import CommandContext, Subparsers
from internal.channels.cli.exit_codes import OK

_BASH = """\
# bash completion for larkspur: save it as
# ~/.local/share/bash-completion/completions/larkspur
_larkspur() {
    local word=${COMP_WORDS[COMP_CWORD]}
    if [[ $word == -* ]]; then
        case ${COMP_WORDS[1]} in
@OPTION_CASES@
            *) COMPREPLY=($(compgen -W "@OPTIONS@" -- "$word")) ;;
        esac
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
# zsh completion for larkspur: save it as _larkspur in a folder of your $fpath
_larkspur() {
    if [[ $PREFIX == -* ]]; then
        case $words[2] in
@OPTION_CASES@
            *) compadd -- @OPTIONS@ ;;
        esac
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
# fish completion for larkspur: save it as ~/.config/fish/completions/larkspur.fish
complete -c larkspur -n __fish_use_subcommand -a "@COMMANDS@"
@CASES@
@OPTION_CASES@
complete -c larkspur @OPTIONS@
"""
_FISH_CASE = 'complete -c larkspur -f -n "__fish_seen_subcommand_from {name}" -a "{words}"'
_FISH_OPTION_CASE = 'complete -c larkspur -n "__fish_seen_subcommand_from {name}" {words}'
_SCRIPTS = {
    "bash": (_BASH, _BASH_CASE, _BASH_CASE),
    "zsh": (_ZSH, _ZSH_CASE, _ZSH_CASE),
    "fish": (_FISH, _FISH_CASE, _FISH_OPTION_CASE),
}


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser("completion", description="Print a shell completion script.")
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="shell to print the script for")
    parser.set_defaults(run=run)


def run(args: Namespace, _context: CommandContext) -> int:
    """Print the script of a shell."""
    script, case, option_case = _SCRIPTS[args.shell]
    parsers = dict(registry.registered())
    words = {name: " ".join(_first_choices(parser)) for name, parser in parsers.items()}
    cases = [case.format(name=name, words=known) for name, known in words.items() if known]
    option_cases = [
        option_case.format(name=name, words=_format_options(args.shell, parser))
        for name, parser in parsers.items()
    ]
    listed = _format_options(args.shell, start_options.build_parser(""))
    script = script.replace("@CASES@", "\n".join(cases)).replace("@COMMANDS@", " ".join(parsers))
    script = script.replace("@OPTION_CASES@", "\n".join(option_cases))
    sys.stdout.write(script.replace("@OPTIONS@", listed))
    return OK


def _format_options(shell: str, parser: argparse.ArgumentParser) -> str:
    options = _options(parser)
    if shell != "fish":
        return " ".join(options)
    long = [name.removeprefix("--") for name in options if name.startswith("--")]
    return " ".join(f"-l {name}" for name in long)


def _first_choices(parser: argparse.ArgumentParser) -> list[str]:
    """Return the choices of the first positional argument."""
    positional = next((one for one in parser._actions if not one.option_strings), None)  # noqa: SLF001 - argparse has no public API for it
    return [] if positional is None else [str(one) for one in positional.choices or ()]


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [name for action in parser._actions for name in action.option_strings]  # noqa: SLF001 - as above
