"""Which words of a program's own arguments are dangerous: they run or write something else.

The tables are not a complete list of what a program can do, and need not be: a rule allows a
program because a person trusts it. They only keep `git log *` from meaning "any program", "any
file" or "any configuration".
"""

import re
from typing import NamedTuple


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
