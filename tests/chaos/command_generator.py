"""Seeded shell commands, rich in syntax that parsers and shells may read differently.

No command names a file outside its folder except devices, or a program that `command_execution`
does not replace, so that every command is harmless there.
"""

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import TypeVar

_Value = TypeVar("_Value")

# fmt: off
_LITERALS = (
    "a", "b", "x-y", "old", "out/old", "out/n.txt", "-n", "--all", "-", "--", "a=b", "k=", "%s",
    "0", "a,b", "1", "2", "10", "a2", "@", ":", "+x", "a:b", "é", "好", "{", "}", "{}", "!", "a!",
    "^", "in", "a#b", "=", "~", "a~", "stop", "push", "log", "victim", "do", "a.b", "%",
    "_", "done", "]", "esac", "fi", "}a", "a=(", "time", "-o", "--output=out/q", "-c", "{a}",
    "@(a|b)", "a[0]", "~+",
)
_QUOTED = (
    "a", "a b", "", " ", "$a", "*", "#", ";", "> out/q", "a > b", "|", "&", "(", ")", "{a,b}",
    "<", "`", "$(victim)", "!", "~", "\\", "\\\\", "é 好", "\t", "a\nb", "victim", "-n", "[", "]",
    '"', "'", "a[$(victim)]", "a[`victim`]=1", "$(victim)", "\\\n", "$((", "${", "EOF", "0", "$",
    "a\\", "#'", "\n", "\n#", "<<EOF",
)
_ESCAPED = " \"'$`\\|&;()<>*?[]{}#!~=ae好-\t0"
_VARIABLES = ("a", "HOME", "B", "1", "@", "*", "#", "?", "-", "$", "!", "0", "_", "IFS", "PWD")
_ANSI = (
    "a", "a b", "\\n", "\\t", "\\x41", "\\'", "\\\\", "\\e", "\\u00e9", "\\101", "\\c", "a\nb",
    "\\x", "\\'; victim #", '"', "\\0", "\\cx",
)
_GLOBS = (
    "*", "o*", "out/*", "?ld", "[ao]*", "[!x]*", "out/[a-z]*", "*.txt", "a*b", "x?", "[", "]",
    "[]", "[a", "[[:alpha:]]*", "[^a]*", "[']']*", "[a b]*",
)
_BRACES = (
    "{a,b}", "a{b,c}d", "{1..3}", "{a,}", "{a}", "{a,b", "a,b}", "{a..c}{1,2}", "{,}", "{a\\,b}",
    "{'a,b'}", "{a,'b c'}", '{"a",b}', "{-n,a}", "{a,b}{", "${a}{b,c}",
)
_TARGETS = (
    "out/a", "out/b", "out/no", "out/old", "out/x", "/dev/null", "new", "old", "secret",
    "./out/c",
)
_BLANKS = (" ", " ", " ", " ", "  ", "\t", " \t ")
_ODD_BLANKS = (
    "\\ ", "\\\n", "\r", "\v", "\f", "\u00a0", "\u3000", "\x85", " \\\n ", "\\\t", "", " \\ ",
    "\n", " # a\n", " \\\\", "\u2028", "''", " '' ",
)
_OUTPUT = (">", ">", ">", ">>", ">|", "&>", "&>>", "2>", "1>", "2>>", "3>", "9>")
_INPUT = ("<", "<", "<", "3<", "<<<")
_DUPLICATES = ("2>&1", ">&2", "1>&2", "2>&-", "<&-", ">&-", "3>&1", ">& 2", "2>& 1", "<&3")
_ODD_REDIRECTS = (
    ">& new", ">&new", "2>&new", "<&old", "<> new", "0>new", "0> new", "0<old", "0<<<a", "{a}>new",
    "{b}<old", "0>>new", "0<>new", "&>|new", "1>|new", "2>&1-", "0>&1", ">&1a", "0<&-", ">&'2'",
    '2>&"1"', "<&0-", ">&'$(victim)'", "&>'$(victim)'", "0<&3", ">& -", "> &1", "12>new", ">",
)
_CONTROLS = (
    " && ", " || ", "; ", ";", "&&", "||", " | ", "|", "\n", " & ", "&", " ;\n", " |& ", "|\n",
    "&&\n", ";# a\n", "\n\n", "\n#'\n", ' |\n# "\n', ";;",
)
_DELIMITERS = (
    "EOF", "'EOF'", '"EOF"', "\\EOF", "E", "'E F'", "E\\OF", "E''OF", "$E", "-", "EOF;", "'EOF'x",
    '"$E"', "EOF)", "0", "''",
)
_BODIES = (
    "a", "$a", "$(victim)", "`victim`", "victim", " EOF", "EOF ", "\tEOF", "EOFX", "\\EOF", "",
    "a\\", "'", "> out/h", "EOF\\", "EOF\r", "E", "${a:-`victim`}", "\t\tvictim", "E\\\nOF",
    "# EOF",
)
_TAILS = (
    " # end", "#no", " #'", '\n# "', " ;", "\n", " &", " \\", "\t#\\\na", "\n\n", " # `",
    ";#'\nvictim", " \\\n", "\\", " #\\\nvictim", "&#a", " <<EOF", "\r", " #\r\nvictim",
)
_PATTERNS = (
    "a", "*", "'a b'", "a|b", "[ab]", '"$a"', "a\\ b", "?", "x | y", "''", "$(victim)", "a)b",
    "\\)", "esac", "(a",
)
_PLAIN_PROGRAMS = (
    *("tracer",) * 20, "git log", "git log", "echo", "tracer a 'b c'", "env tracer", "tracer a",
)
_OTHER_PROGRAMS = (
    "nice -n 5 tracer", "nohup tracer", "timeout 5 tracer", "git push", "command tracer",
    "time tracer", "env A=1 tracer", "victim", "tracer stop", "test a", "git -C out log",
    "'tracer'", 'tra"cer"', "\\tracer", "tr''acer", "./tracer", "$a", "$(tracer)", "`tracer`",
    "eval tracer", "exec tracer", "printf %s", "[ a ]", ":", "xargs tracer", "xargs",
    "sudo tracer", "bash -c tracer", "sh -c victim", "bash", "sh -s", "env bash", "bash -o posix",
    "bash -euo pipefail", "bash -s a", "A=1 tracer", "sh -s -- --version", "source /dev/stdin",
    ". /dev/stdin", "bash /dev/stdin", "command -p victim", "trap victim EXIT;", "env -i victim",
    "vic''tim", "v{i,}ctim", "vict[i]m", "git --no-pager push", "alias t=victim\nt",
    "coproc tracer", "exec -a tracer victim", "time -p victim", "! victim", "xargs bash -c",
    "env git push", "command git push", "git 'push'", "git p{u,}sh", "git \\push",
    "builtin eval victim", "if victim; then", "bash <(tracer)", "bash <<< victim",
    "sh < old; bash", "read a; $a", "test -v", "[ -v", "printf -v", "unset", "read", "wait -n -p",
    "let", "declare", "test 1 -eq", "hash victim;", "type victim;", "unset a;", "export a=b;",
    "local a;", "shift;",
)
_SIGNS = ("=", ">", "<", "-lt", "-a", "\\>", "!=", "-ef")
_ASSIGNMENTS = (
    "a=", "B=", "A=1", "a+=", "IFS=", "a[0]=", "A=", "a=~", "BASH_ENV=", "a=(", "ENV=",
)
_MARKS = "'\"\\`$(){}[]<>|&;#!~*?=\n\t -a120é/\r\v\u00a0\x85,.:%@^+"
# fmt: on
_DEVICE = re.compile(r"/dev/(?:null|stdin)(?![\w/])")
_HARMFUL = re.compile(
    r"(?<![\w.~*?\]\\])/|\$\w*/|\.\./|\0|\b(?:kill|suspend|sleep|ulimit|disown)\b|\d\d[<>]"
)


def is_harmless(command: str) -> bool:
    """Return True if a command names no path outside its folder and cannot stop its runner."""
    return not _HARMFUL.search(_DEVICE.sub("device", command))


class CommandGenerator:
    """An endless sequence of distinct commands that depends on the seed only.

    Most commands are plain, some use the whole grammar, some are damaged in one or two places.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311  # reproducible, not secret
        self._seen: set[str] = set()
        self._bodies: list[str] = []
        self._odd = 0.0

    def __iter__(self) -> Iterator[str]:
        while True:
            command = self._command()
            if is_harmless(command) and command not in self._seen:
                self._seen.add(command)
                yield command

    def _command(self) -> str:
        self._odd = self._pick((0.0, 0.0, 0.01, 0.03, 0.15))
        self._bodies = []
        text = "\n".join((self._list(self._pick((0, 0, 1, 2))), *self._bodies))
        if self._chance(0.1):
            text += self._pick(_TAILS)
        if self._odd and "break" not in text and self._chance(0.25):  # a damaged loop may never end
            for _ in range(self._pick((1, 2))):
                text = self._damaged(text)
        return text

    def _damaged(self, text: str) -> str:
        """Return the text with a character removed, doubled, swapped or inserted."""
        at = self._random.randrange(len(text) + 1)
        before, char, after = text[:at], text[at : at + 1], text[at + 1 :]
        mark = self._pick(tuple(_MARKS))
        return before + self._pick(("", char * 2, after[:1] + char, mark + char)) + after

    def _list(self, depth: int) -> str:
        text = self._part(depth)
        while self._chance(0.3):
            text += self._pick(_CONTROLS) + self._part(depth)
        return text

    def _part(self, depth: int) -> str:
        if depth and self._chance(0.35):
            return self._compound(depth - 1)
        start = self._pick(("! ", "time ", "time -p ")) if self._chance(0.04) else ""
        return start + self._simple(depth)

    def _compound(self, depth: int) -> str:
        inner, other = self._list(depth), self._list(depth)
        shapes: tuple[Callable[[], str], ...] = (
            lambda: f"({inner})",
            lambda: f"( {inner} )",
            lambda: f"{{ {inner}; }}",
            lambda: f"if {inner}; then {other}; fi",
            lambda: f"for a in {self._words(depth)}; do {inner}; done",
            lambda: f"for x in a b\ndo {inner}\ndone",
            lambda: f"case {self._word(depth)} in {self._pattern()}) {inner};; *) {other};; esac",
            lambda: f"[ {self._word(0)} {self._pick(_SIGNS)} {self._target()} ] && {inner}",
            lambda: f"{{ {inner}\n}}",
            lambda: f"if {inner}\nthen {other}\nelif {inner}; then {other}; else {inner}\nfi",
            lambda: f"while ! {inner}; do break; done",
            lambda: f"until {inner}; do break; done",
            lambda: f"case a in ({self._pattern()}) {inner} ;& b) {other}\nesac",
            lambda: f"[[ {self._word(0)} == {self._word(0)} ]] && {inner}",
            lambda: f"(( 1 + {self._pick(('1', '2', 'a'))} )) && {inner}",
            lambda: f"f() {{ {inner}; }}; f {self._words(depth)}",
            lambda: f"function g {{ {inner}\n}}; g",
            lambda: f"((({inner})))",
        )
        common = self._chance(0.85)
        text = self._pick(shapes[:8] if common else shapes)()
        return text + self._gap(glue=0.2) + self._redirect() if self._chance(0.2) else text

    def _pattern(self) -> str:
        return self._pick(_PATTERNS)

    def _simple(self, depth: int) -> str:
        words = [self._pick(_ASSIGNMENTS) + self._word(depth)] if self._chance(0.03) else []
        words.append(self._pick(_PLAIN_PROGRAMS if self._chance(0.93) else _OTHER_PROGRAMS))
        words += [self._word(depth) for _ in range(self._pick((0, 1, 1, 2, 2, 3)))]
        for _ in range(self._pick((0, 0, 0, 1, 1, 2))):
            at = len(words) if self._chance(0.9) else self._random.randrange(len(words))
            words.insert(at, self._redirect())
        text = words[0]
        for word in words[1:]:
            text += self._gap(glue=0.25 if word[:1] in "<>&" else 0.0) + word
        return text + self._heredoc() if self._chance(0.04) else text

    def _words(self, depth: int) -> str:
        return self._gap().join(self._word(depth) for _ in range(self._pick((1, 2, 3))))

    def _word(self, depth: int) -> str:
        text = self._piece(depth)
        while self._chance(0.25):
            text += self._piece(depth)
        return text

    def _piece(self, depth: int) -> str:
        kinds: tuple[Callable[[], str], ...] = (
            lambda: self._pick(_LITERALS),
            lambda: "'" + self._pick(_QUOTED).replace("'", "") + "'",
            lambda: '"' + "".join(self._quoted(depth) for _ in range(self._pick((0, 1, 2)))) + '"',
            lambda: "\\" + self._pick(tuple(_ESCAPED)),
            lambda: self._pick(_GLOBS),
            lambda: self._pick(("''", '""', "\\''", "'\\'", "$''", '$"a b"')),
            lambda: self._pick(_BRACES),
            lambda: self._expansion(depth),
        )
        return self._random.choices(kinds, (48, 16, 18, 8, 5, 2, 1, 2))[0]()

    def _quoted(self, depth: int) -> str:
        if self._chance(0.12):
            return self._expansion(depth)
        text = self._pick(_QUOTED)
        return re.sub(r'([$`"\\])', r"\\\1", text) if self._chance(0.9) else text.replace('"', "")

    def _expansion(self, depth: int) -> str:
        name = self._pick(_VARIABLES)
        inner = self._list(depth - 1) if depth else "tracer a"
        plain = (f"${name}", f"${{{name}}}", f"$({inner})", f"`{inner.replace('`', '')}`")
        return self._pick(
            (
                *(*plain, *plain, f"${{{name}:-b}}", f"${{{name}#a}}", f"${{#{name}}}", "$(( a ))"),
                *(f"$( {inner} )", "$((1+2))", f"$'{self._pick(_ANSI)}'", "${a:=x}", "$[1]"),
                *(f"<({inner})", f">({inner})", f"${{a:-{self._word(0)}}}", f"$( ({inner}) )"),
            )
        )

    def _redirect(self) -> str:
        if self._chance(0.05):
            return self._pick(_ODD_REDIRECTS)
        if self._chance(0.2):
            return self._pick(_DUPLICATES)
        if self._chance(0.2):
            target = self._pick(("old", "out/old", "/dev/null", "a"))
            return self._pick(_INPUT) + self._gap(glue=0.4) + target
        return self._pick(_OUTPUT) + self._gap(glue=0.4) + self._target()

    def _target(self) -> str:
        target = self._pick(_TARGETS)
        if self._chance(0.6):
            return target
        quoted = target + self._pick(_QUOTED).replace("'", "") if self._chance(0.5) else target
        bare = (target.replace("o", "\\o", 1), target + "''", target + self._piece(0))
        return self._pick((f"'{quoted}'", f"'{quoted}'", f'"{target}"', *bare))

    def _heredoc(self) -> str:
        """Return the start of a here-document; its body follows the line."""
        delimiter, tabs = self._pick(_DELIMITERS), self._chance(0.3)
        lines = [self._pick(_BODIES) for _ in range(self._pick((0, 1, 2)))]
        if self._chance(0.93):
            lines.append(("\t" if tabs else "") + re.sub(r"['\"\\]", "", delimiter))
        self._bodies += lines
        return f" <<{'-' if tabs else ''}{self._gap(glue=0.7)}{delimiter}"

    def _gap(self, glue: float = 0.0) -> str:
        if self._chance(glue):
            return ""
        return self._pick(_ODD_BLANKS if self._chance(self._odd) else _BLANKS)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _pick(self, values: tuple[_Value, ...]) -> _Value:
        return self._random.choice(values)
