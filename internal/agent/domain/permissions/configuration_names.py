"""The files that configure git, agents, editors and other programs which people run in a folder.

Each entry is a name, or a folder and a name in it, and includes everything below it. It applies in
every folder: `a/AGENTS.md` configures programs and agents that work in `a`.
"""

GIT_CONFIGURATION = (
    "commondir",
    "config",
    "config.worktree",
    "hooks",
    "info",
    "modules",
    "worktrees",
)
"""Files in its folder that git reads but does not write for a commit, branch, merge or stash.

Each of these can name a program, or a folder whose configuration does.
"""

PROTECTED_NAMES = (".larkspur", ".mcp.json", "AGENTS.md", "CLAUDE.md")
"""At the top of a workspace, commands cannot change these where the sandbox protects files."""

CONFIGURATION_NAMES = (
    *PROTECTED_NAMES,
    # agents
    ".agents",
    ".aider.conf.yml",
    ".amazonq",
    ".augment",
    ".claude",
    ".clinerules",
    ".codex",
    ".continue",
    ".crush.json",
    ".cursor",
    ".cursorrules",
    ".gemini",
    ".github/agents",
    ".github/chatmodes",
    ".github/copilot-instructions.md",
    ".github/instructions",
    ".github/prompts",
    ".goosehints",
    ".junie",
    ".kiro",
    ".opencode",
    ".qwen",
    ".roo",
    ".roomodes",
    ".roorules",
    ".rules",
    ".trae",
    ".windsurf",
    ".windsurfrules",
    "AGENT.md",
    "AGENTS.override.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    "QWEN.md",
    "WARP.md",
    "opencode.json",
    "opencode.jsonc",
    # editors and development containers
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals.el",
    ".exrc",
    ".fleet",
    ".idea",
    ".nvim.lua",
    ".nvimrc",
    ".vimrc",
    ".vscode",
    ".zed",
    # shells that read a file on entering a folder
    ".autoenv.zsh",
    ".env.fish",
    ".envrc",
    ".mise.toml",
    "mise.toml",
    # hooks of git and continuous integration
    ".circleci",
    ".gitea/workflows",
    ".forgejo/workflows",
    ".github/actions",
    ".github/workflows",
    ".gitlab-ci.yml",
    ".husky",
    ".lefthook.yml",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    "azure-pipelines.yml",
    "Jenkinsfile",
    "lefthook.yml",
)
