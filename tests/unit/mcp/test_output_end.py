"""Lines of an output that are reported as the reason of a failure."""

import pytest

from internal.mcp.output_end import end_of_output

TRACEBACK = """Traceback (most recent call last):
  File "/home/ada/server.py", line 3, in main
    raise RuntimeError(x)
RuntimeError: the database is locked"""
NODE = """node:internal/modules/cjs/loader:1080
  throw err;
  ^

Error: Cannot find module 'x'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1077:15)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND'
}

Node.js v20.20.2"""
NPM = """npm error code E404
npm error 404 Not Found - GET https://registry.npmjs.org/no-such
npm error
npm error A complete log of this run can be found in: /home/ada/.npm/_logs/x-debug-0.log"""


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (TRACEBACK, "RuntimeError: the database is locked"),
        (
            NPM,
            "npm error code E404 / npm error 404 Not Found - GET https://registry.npmjs.org/no-such",
        ),
        ("", ""),
        ("  \n}", "}"),
    ],
)
def test_lines_that_say_nothing_are_left_out(output: str, told: str) -> None:
    assert end_of_output(output.splitlines(), 500) == told


def test_the_reason_in_front_of_stack_frames_is_kept() -> None:
    told = end_of_output(NODE.splitlines(), 500)
    assert "Error: Cannot find module 'x'" in told
    assert "run_main_module" not in told
    assert "Node.js v20" not in told


def test_a_long_output_loses_its_beginning() -> None:
    told = end_of_output([f"line {number}" for number in range(100)], 40)
    assert len(told) == 40
    assert told.startswith("… ")
    assert told.endswith(" / line 99")
