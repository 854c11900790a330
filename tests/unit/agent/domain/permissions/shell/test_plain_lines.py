"""Command texts without here-documents, compared with a real bash."""

import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.agent.domain.permissions.shell.parser import ParsedCommand, parse_script
from internal.agent.domain.permissions.shell.plain_lines import PlainLines, plain_lines
from tests.support.property_examples import examples


@pytest.mark.parametrize(
    ("text", "plain", "documents"),
    [
        ("ls", "ls", ()),
        ("cat - <<'E' | wc\n$(x)\nE\nls", "cat '-'  | wc\n\nls", ()),
        ("a <<A <<-'B'; b\n$x\nA\n\tB", "a  ; b\n", ('"$x\n"',)),
        ('a <<E\n"$(b "c")" \\$d \\e\nE', "a \n", ('"\\"$(b "c")\\" \\$d \\\\e\n"',)),
        ("a \\\n  b\\\nc", "a   bc", ()),
        ("a '\\\n' # \\\nb", "a '\\\n' # \\\nb", ()),
        ('a "$(cat <<\'E\'\n$b "c"\n\nE\n)"', 'a "\\$b \\"c\\""', ()),
        ("a <<'B C'\nx\nB C", "a \n", ()),
    ],
)
def test_here_documents_are_taken_out(text: str, plain: str, documents: tuple[str, ...]) -> None:
    assert plain_lines(text) == PlainLines(plain, documents, runs_cat="$(cat" in text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a <<E\nnever ended",
            "a <<$E\n$E",
            "a <<''\n\n",
            "a[1<<2]=x\nb\n2]=x",
            "((1<<2))\nb\n2))",
        ),
        *(
            "a <<E\nb\\\nE\nE",
            "$(a <<E\nb\nE)\nE)",
            "a 'b <<E\n",
            "$(case x in y) <<E\nE\n;; esac)",
        ),
        *("a <\\\n<E\nb\nE", "a <<E 'b\n'\nE", "@(a <<E\nb\nE\n)", "a 2<<E\nE"),
    ],
)
def test_what_is_not_known_is_left_as_it_is(text: str) -> None:
    assert plain_lines(text) is None


@pytest.mark.parametrize(
    "text",
    [
        *("<<$((" + "$aa" * 20_000, "<<${" + "$aa" * 20_000, "<<a[" + "$aa" * 20_000),
        *('"$(' * 20_000 + "<<", "\\\n" * 30_000, "<<E\n" * 15_000, "a <<E\n$(\nE\n" * 6_000),
        "\"$(cat <<'E'\nx\nE\n \"" * 3_000,
    ],
)
def test_the_time_is_bounded(text: str) -> None:
    started = time.process_time()
    plain_lines(text)
    assert time.process_time() - started < 2


PIECES = [
    *("c1", "c2", "c3 x", " ", "\n", "; ", "&&", "|", " & ", "(", ")", "{ ", "; }", "<<E", "<<'E'"),
    *("<<-E", '<<"E"', "<<F", "<<E F", "<<\\E", "\nE\n", "\n\tE\n", "\nF\n", "E", "$(", "`", "$(("),
    *("))", "${x:-", "}", "$x", '"', "'", "\\\n", "\\", "#", " #", "[", "]", "a[1", "2]=x", "a=("),
    *("[[ ", " ]]", "case x in ", "esac", ";;", "x)", "if c1; then ", "; fi", "<<<", "< f", "> f"),
    *("$'", "$[", "@(", "f() ", "f", "<(", "\"$(cat <<'E'\n", '\nE\n)"', "E)", "\nE \n", "<", "<<"),
]
# bash calls it in the place of every program, as none but this one can be found
RECORDER = '() { printf "%s\\0" "$1" >> "$LOG"; }'
CAT = '() { printf "cat\\0" >> "$LOG"; while IFS= read -r l; do printf "%s\\n" "$l"; done; }'


@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=16).map("".join))
@examples(400)
def test_bash_is_inert_that_is_not_a_part(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    script = parse_script(text)
    commands = [part for part in script.parts if isinstance(part, ParsedCommand)]
    if script.problem or any(part.words and part.words[0].kind != "plain" for part in commands):
        return
    assert run_by_bash(tmp_path_factory.getbasetemp(), text) <= {
        word.text for part in commands for word in (*part.assignments, *part.words)
    }


def run_by_bash(folder: Path, text: str) -> set[str]:
    """Return the names of the programs that bash looks for."""
    log = folder / "ran"
    log.write_text("")
    environment = {"PATH": "/nonexistent", "LOG": str(log)}
    functions = {"command_not_found_handle": RECORDER, "cat": CAT}
    subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", text],
        cwd=folder,
        env={**environment, **{f"BASH_FUNC_{name}%%": body for name, body in functions.items()}},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return {*log.read_text().split("\0")} - {""}
