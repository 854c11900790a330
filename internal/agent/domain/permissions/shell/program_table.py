"""Tables of programs: which run other programs, and which words no wildcard may cover.

The tables are deliberately too strict rather than complete: a program that is listed without need
only asks a person once more.
"""

import re
from typing import NamedTuple


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
        "edit-description no-index",
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
    r"@.*|--?specs.*|--?fplugin.*|--?wrapper.*|-Wl,.*|-X(?:linker|clang|assembler)|-fuse-ld.*|-load"
    r"|--prefix.*|--for-.*",
)
_PIP = UnsafeWords(
    "", split_names("python log"), verbs=_all_except("list|show|freeze|check|index|hash|inspect")
)
_NETCAT = UnsafeWords("ec", split_names("sh-exec lua-exec"))
_JUST = UnsafeWords(
    "f", split_names("file justfile makefile rakefile noxfile taskfile dir working-directory")
)
_CONDA = UnsafeWords("", frozenset(), verbs=_all_except("list|info|search"))
_NODE_CONFIG = UnsafeWords(
    "cCpr", split_names("config config-file require loader import plugins presets root setupFiles")
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
        r"(?=\w*[IFPT])\w+",
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
    "helm": UnsafeWords(
        "",
        split_names("post-renderer post-renderer-args kubeconfig"),
        verbs="plugin|install|upgrade",
    ),
    "ansible": UnsafeWords(pattern=".+"),
    "ansible-playbook": UnsafeWords(pattern=".+"),
    "pylint": UnsafeWords("", split_names("init-hook load-plugins rcfile")),
    "flake8": UnsafeWords("", split_names("config append-config")),
    "sphinx-build": UnsafeWords("cD", split_names("conf-dir define")),
    "mkdocs": UnsafeWords("f", split_names("config-file")),
    "tox": UnsafeWords(
        "cx", split_names("conf root workdir override"), verbs=r"e|exec|devenv|r|p|run|run-parallel"
    ),
    "conda": _CONDA,
    "mamba": _CONDA,
    "micromamba": _CONDA,
    "pipenv": UnsafeWords("", split_names("python"), verbs=_all_except("graph|check|verify")),
    "pdm": UnsafeWords("p", split_names("project"), verbs=_all_except("list|show|search|info")),
    "hatch": UnsafeWords(verbs=_all_except("version|status")),
    "rye": UnsafeWords(verbs=_all_except("list|show|version")),
    "nix": UnsafeWords(
        "", split_names("option"), verbs=_all_except("search|path-info|hash|log|store")
    ),
    "bazel": UnsafeWords("", split_names("run_under bazelrc"), verbs="run"),
    "meson": UnsafeWords("", split_names("cross-file native-file"), verbs="devenv|install|dist"),
    "vite": _NODE_CONFIG,
    "vitest": _NODE_CONFIG,
    "webpack": _NODE_CONFIG,
    "rollup": _NODE_CONFIG,
    "babel": _NODE_CONFIG,
    "mocha": _NODE_CONFIG,
    "playwright": _NODE_CONFIG,
    "cypress": _NODE_CONFIG,
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
    """
    pwsh powershell cmd python pypy ipython perl ruby irb node nodejs lua luajit php tclsh
    wish rscript guile osascript awk gawk mawk nawk groovy scala julia elixir erl racket java
    jshell dotnet swift ocaml ghci octave gnuplot r m4 dc tsx ts-node nix-shell
    """
)
WRAPPERS = split_names(
    """
    sudo doas su pkexec runuser env nohup nice ionice chrt timeout gtimeout time xargs command
    builtin exec eval source . coproc setsid stdbuf taskset flock watch strace ltrace parallel
    perf sqlite psql mysql mariadb script unbuffer expect spawn ssh chroot unshare nsenter
    systemd-run at batch crontab trap busybox toybox hash enable export declare typeset
    readonly local set shopt unset let complete bind mapfile readarray vi vim view nvim ex ed
    emacs emacsclient nano less more most pager man info gdb lldb dbus-run-session firejail
    bwrap rlwrap caffeinate proot fakeroot run-parts start-stop-daemon entr screen tmux dtach
    npx bunx uvx pipx pnpx ld-linux ld-musl setpriv capsh cgexec numactl catchsegv valgrind rr
    faketime ccache distcc direnv dotenv alias fc jobs compgen setarch arch linux32 linux64
    logsave choom prlimit runcon sg newgrp run0 chpst setuidgid softlimit socat ldd sshpass
    autossh mosh pdsh pssh torsocks proxychains hyperfine watchexec nodemon xvfb-run eatmydata
    cpulimit uftrace bpftrace wine mise asdf chronic pee ifne ts sponge vipe zrun i386 i486
    i586 i686 x86_64 uname26 pipexec dumb-init tini s6-setuidgid gosu su-exec runsv xterm rxvt
    urxvt uxterm konsole gnome-terminal alacritty kitty foot terminator xfce4-terminal byobu
    zellij abduco cage distrobox toolbox guix schroot systemd-inhibit systemd-nspawn
    machinectl dbus-launch ssh-agent gpg-agent keychain aa-exec xdg-terminal-exec sem rush
    task-spooler lockfile with-lock-ex withexeceditor command_not_found compdef autoload
    zmodload noglob nocorrect scriptreplay cronitor catch unbuffer-p xdg-open open gio mail
    mutt ftp w3m lynx gvim rvim vimdiff mc busctl dbus-send gdbus qdbus
    """
)
KNOWN_PROGRAMS = frozenset(UNSAFE_WORDS) | split_names(
    """
    : true false echo pwd dirs type hash test [[ times ulimit umask getopts kill logout
    return exit break continue shift suspend disown bg fg caller which whereis whatis apropos
    help ls dir vdir cat tac head tail nl od hexdump strings cut paste join comm tr fold fmt pr
    expand unexpand column rev colrm csplit wc sum cksum md5sum sha1sum sha224sum sha256sum
    sha384sum sha512sum b2sum base32 base64 basenc bc cp mv ln rm rmdir mkdir mkfifo mknod mktemp
    touch install chmod chown chgrp chattr lsattr stat truncate dd shred link unlink readlink
    realpath basename dirname pathchk du df free uptime who whoami w id groups users logname
    uname nproc arch tty stty tput clear reset sleep usleep seq yes factor expr numfmt
    printenv tsort ps pgrep pkill killall pidof top htop vmstat iostat lsof fuser lsblk lscpu
    lsusb lspci dmesg journalctl mount umount sync grep egrep fgrep zgrep ag ack cmp colordiff
    jq yq xq cal ncal tee look gzip gunzip zcat bzip2 bunzip2 bzcat xz unxz xzcat zstd unzstd
    zstdcat lz4 7z unzip zipinfo ar nm objdump readelf size strip addr2line ranlib ping ping6
    traceroute dig host nslookup whois ss netstat ifconfig route arp rg ruff black isort
    coverage pyright tsc biome stylelint gofmt rustfmt clang-format shellcheck shfmt hadolint
    yamllint markdownlint codespell reboot shutdown poweroff halt init useradd userdel usermod
    groupadd passwd chpasswd mkfs fdisk parted cargo-fmt
    """
)
"""Programs that run no other program, or only by their unsafe words."""

TEXT_RUNNERS = SHELLS | split_names(
    "eval trap ssh su watch parallel script hyperfine sg expect pee xterm sem"
)
"""Programs that run a word as shell code."""
