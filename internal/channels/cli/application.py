"""Interface between the commands and the process they run in.

The composition root implements it and passes it to the commands, because channels import neither
adapters nor the settings loader.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from internal.channels.cli.transports.interface import Transport

if TYPE_CHECKING:  # a one-shot through a gateway imports nothing of the agent
    from internal.agent.ports.maintenance.reports import DatabaseStatus, MoveResult, Pruned

TransportWork = Callable[[Transport], Coroutine[Any, Any, int]]
"""The work of a command on a transport; it returns the exit code."""


CheckState = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """A result of `larkspur doctor`. `advice` is a solution of a problem."""

    name: str
    state: CheckState
    sentence: str
    advice: str = ""


class UiChoices(NamedTuple):
    """Appearance of a session. `status_line` names the parts of its status line, in order."""

    notify: bool = True
    status_line: Sequence[str] = ("mode", "model", "folder", "context", "cost")


class SettingsSummary(NamedTuple):
    """The settings that commands show.

    Attributes:
        file: the configuration file, None without one.
        configured: number of keys that are not defaults.
        database: the database file, None when a server has it.
        key_error: the reason why the model's API key cannot be used; "" if the key is set.
        rows: key, value and origin of every setting.
        transcription: model and address of the service for recordings; "" without one.
        search_providers: the search providers in order, each with the reason why it is unavailable,
            or "".
        cost_limit: the reason why the limit in US dollars does not apply to the model, or "".
    """

    home: Path
    file: Path | None
    configured: int
    language: str
    provider: str
    model: str
    key_error: str
    database: Path | None
    rows: Sequence[tuple[str, str, str]]
    transcription: str = ""
    search_providers: Sequence[tuple[str, str]] = ()
    cost_limit: str = ""
    ui: UiChoices = UiChoices()


class ListedModel(NamedTuple):
    """A model of a provider. Prices are US dollars per million tokens; None is unknown."""

    provider: str
    model: str
    in_use: bool
    key: Literal["set", "missing", "not needed"]
    context_window: int | None
    max_output_tokens: int | None
    price: Mapping[str, float | None] | None


class ServerModels(NamedTuple):
    """The models that a provider's server lists; None if it lists none, with the `sentence` why.

    `in_use` is the configured model, "" if it belongs to another provider.
    """

    provider: str
    models: Sequence[str] | None
    in_use: str
    sentence: str
    advice: str


class ListedLesson(NamedTuple):
    """A refusal learned from a model server. `model` is "" for all models of the address.

    `refused` is the refused part of a request, `since` the form of requests after that, `words` the
    message of the server, and `learned` the time as RFC 3339.
    """

    provider: str
    address: str
    model: str
    refused: str
    since: str
    words: str
    version: str
    learned: str


class ListedRepairs(NamedTuple):
    """Counts of the repaired calls of a model, by kind. `last` is RFC 3339."""

    provider: str
    model: str
    kinds: Mapping[str, int]
    last: str


class LessonAdmin(Protocol):
    """The learned refusals of model servers. Methods raise LarkspurError without a database."""

    def list_all(self) -> list[ListedLesson]:
        """Return all lessons."""
        ...

    def list_repairs(self) -> list[ListedRepairs]:
        """Return the repairs of calls of all models."""
        ...

    def forget(self, model: str | None) -> int:
        """Remove the lessons about a model, or all; return how many there were."""
        ...


class ListedProfile(NamedTuple):
    """A profile. `problem` is the reason why it cannot be used, or ""; `warning` a likely mistake.

    `source` is its file, "built in" without one, and `values` are its keys as in a file.
    """

    name: str
    in_use: bool
    source: str
    problem: str
    warning: str
    summary: str
    values: Mapping[str, Any]


class ToolItem(NamedTuple):
    """A tool in a list."""

    name: str
    risk: str
    description: str


class InstructionItem(NamedTuple):
    """A text that the model follows. `name` is its file, `size` its size in bytes."""

    source: Literal["owner", "chat", "folder", "caller"]
    name: str
    text: str
    size: int


class FolderPrompt(NamedTuple):
    """The model's input before a task in a folder.

    A tool is a name, a description and its `parameters`, a JSON schema. `problems` are sentences
    about the instruction files and skills that are not used.
    """

    system: str
    instructions: str
    tools: Sequence[Mapping[str, Any]]
    problems: Sequence[str]


class SkillItem(NamedTuple):
    """A skill in a list. `problems` are sentences about errors and unusual content."""

    name: str
    state: str
    description: str
    folder: str
    origin: str
    sha256: str
    problems: Sequence[str]

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns in a list."""
        return self.name, self.state, self.origin, self.description


class SkillReport(NamedTuple):
    """Review of a skill. `files` are path, size and the target of a link.

    `requested` are the entries of `allowed-tools`, each with a rule that a person may grant, or
    with the reason why there is none. `lacks` are sentences about requirements of its scripts that
    commands do not have.
    """

    item: SkillItem
    files: Sequence[tuple[str, int, str]]
    scripts: Sequence[str]
    binary: Sequence[str]
    invisible: Sequence[str]
    requested: Sequence[tuple[str, str, str]]
    lacks: Sequence[str]


class SkillAdmin(Protocol):
    """The skills, including the shipped ones. Nothing of a skill is executed.

    Every method raises LarkspurError if a skill is missing, not readable or refused.
    """

    def skills(self) -> list[SkillItem]:
        """Return all skills, including unusable ones."""
        ...

    def review(self, name: str) -> SkillReport:
        """Return the review of a skill."""
        ...

    def accept(self, item: SkillItem, rules: Sequence[str]) -> None:
        """Accept a skill as it was reviewed, and grant rules that it asks for."""
        ...

    def add(self, source: str) -> tuple[list[SkillItem], list[str]]:
        """Add the skills in a folder or ZIP file, and return them with why others were not."""
        ...

    def remove(self, name: str) -> SkillItem:
        """Remove a skill that was added."""
        ...

    def check(self, folder: str) -> list[str]:
        """Return sentences about unusual content of the skills in a folder."""
        ...


class McpItem(NamedTuple):
    """An MCP server in a list. `tools` counts the tools that the model gets."""

    name: str
    state: str
    tools: int
    target: str
    sha256: str
    problems: Sequence[str]

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns in a list."""
        return self.name, self.state, str(self.tools), self.target


class ImportedServer(NamedTuple):
    """A server of a file, as it would be added.

    `shown` is its command line or address, `notes` describe changes and the access of its command,
    and `problem` is a sentence with the reason why it cannot be added, "" if none is known.
    """

    name: str
    entry: Mapping[str, Any]
    shown: str
    notes: Sequence[str]
    problem: str


class McpReport(NamedTuple):
    """Review of an MCP server.

    `facts` are names and values, `tools` are name, risk, state and description. `changes` are the
    lines of a diff to the accepted version.
    """

    item: McpItem
    facts: Sequence[tuple[str, str]]
    is_listed: bool
    tools: Sequence[tuple[str, str, str, str]]
    problems: Sequence[str]
    changes: Sequence[str]


class McpNeeds(NamedTuple):
    """Unmet requirements of the command of a server.

    `problem` is the end of a sentence; if it `is_hopeless`, no consent of a person helps. `entry`
    is complete except for packages: `download` are the packages to install from the `hosts`, or "".
    `reads` are the paths that the command may read, `network` the hosts that it may always reach,
    or "". `install` is a command that makes the network unnecessary.
    """

    problem: str
    is_hopeless: bool
    entry: Mapping[str, Any]
    reads: Sequence[str] = ()
    network: str = ""
    download: str = ""
    hosts: Sequence[str] = ()
    install: str = ""


class McpInstalled(NamedTuple):
    """The entry of a server whose packages are installed.

    `failed_scripts` is true if they were installed without their own scripts, since these failed.
    """

    entry: Mapping[str, Any]
    failed_scripts: bool


class McpAdmin(Protocol):
    """The MCP servers. Every method raises LarkspurError if a server is missing or refused."""

    def servers(self) -> list[McpItem]:
        """Return all servers, including unusable ones. None is started."""
        ...

    def needs(self, name: str, entry: Mapping[str, Any]) -> McpNeeds | None:
        """Return the unmet requirements of the command of an entry, without starting it."""
        ...

    def limits(self, name: str, entry: Mapping[str, Any]) -> list[str]:
        """Return sentences about hosts that the command of an entry cannot reach as written."""
        ...

    def install(
        self, name: str, entry: Mapping[str, Any], on_progress: Callable[[int], None]
    ) -> McpInstalled:
        """Install the packages that a command downloads, and return an entry that starts them.

        `on_progress` is called every few seconds with the elapsed seconds.
        """
        ...

    def add(self, name: str, entry: Mapping[str, Any]) -> McpItem:
        """Add a server, which needs a review. One that was never accepted is replaced."""
        ...

    def remove(self, name: str) -> None:
        """Remove a server that was added."""
        ...

    def read_file(self, path: str) -> list[ImportedServer]:
        """Return the servers in a file of this or of another program."""
        ...

    def show(self, name: str) -> McpReport:
        """Return the review of a server without starting it."""
        ...

    def test(self, name: str) -> McpReport:
        """Start a server, list its tools, and stop it."""
        ...

    def try_isolated(self, name: str) -> McpReport | None:
        """Start a server like `test`, but only in isolation; None without it."""
        ...

    def accept(self, report: McpReport) -> None:
        """Accept the definition and tools as they were shown."""
        ...

    def sign_in(self, name: str, show: Callable[[str], None]) -> None:
        """Sign in to a server, and wait for it; `show` gets the URL to open in a browser."""
        ...

    def sign_out(self, name: str) -> bool:
        """Remove the login to a server. Return False if there was none."""
        ...


class HookItem(NamedTuple):
    """A hook or a webhook in a list. `number` is its place in the list.

    `suits_libraries` is false for a secret that not all libraries that verify signatures take.
    """

    name: str
    kind: Literal["webhook", "hook"]
    events: Sequence[str]
    number: int
    suits_libraries: bool

    @property
    def cells(self) -> tuple[str, ...]:
        """The columns in a list."""
        return self.name, self.kind, ", ".join(self.events)


class HookTrial(NamedTuple):
    """The outcome of a trial of a hook or webhook.

    A webhook has `accepted` or `rejected` the test event, with `status` and, if it was rejected,
    the beginning of its response as `words`. A hook lets the example `pass`, has a person asked or
    refuses. Either has `failed` if it gave no usable answer; `words` complete "it …".
    """

    name: str
    kind: Literal["webhook", "hook"]
    outcome: Literal["accepted", "rejected", "failed", "pass", "ask", "refuse"]
    seconds: float
    status: int
    words: str
    location: str


class HookAdmin(Protocol):
    """The hooks and webhooks of the settings."""

    def items(self) -> list[HookItem]:
        """Return the webhooks, then the hooks, in the order of the settings."""
        ...

    def try_out(self, item: HookItem) -> HookTrial:
        """Send a test event to a webhook, or ask a hook about an example."""
        ...


class DatabaseAdmin(Protocol):
    """The database of the settings. Every method raises LarkspurError if it cannot be used."""

    def status(self) -> "DatabaseStatus":
        """Return the contents and the size of the database. Changes nothing."""
        ...

    def pending(self) -> list[str]:
        """Return the migrations that are not applied yet."""
        ...

    def migrate(self, report: Callable[[str], None]) -> None:
        """Apply the pending migrations; `report` receives a line for each."""
        ...

    def vacuum(self) -> str:
        """Release as much unused space as possible now, and return a description of the result."""
        ...

    def back_up(self, target: Path) -> str:
        """Copy the database to a new file while it is used, and return a description."""
        ...

    def export(self, target: Path) -> str:
        """Write all rows to a new file as JSON Lines, and return a description."""
        ...

    def prune(self, *, dry_run: bool) -> list["Pruned"]:
        """Remove the data that is older than the settings allow, or only count it."""
        ...

    def move(self, url: str, report: Callable[[str], None]) -> "MoveResult":
        """Move all rows to the database at a URL; `report` receives the progress."""
        ...

    def cancel_move(self) -> bool:
        """Allow use of a database again that was moved away; False if it was not moved."""
        ...


class Application(Protocol):
    """The process that a command runs in."""

    prices_as_of: str
    """The day on which the prices of the models were read, YYYY-MM-DD."""

    def settings(self, config: str | None) -> SettingsSummary:
        """Read the settings.

        Raises:
            ConfigError: the settings cannot be used.
        """
        ...

    def find_providers_of_key(self, key: str) -> list[tuple[str, str]]:
        """Return the names and titles of the providers whose keys look like this one."""
        ...

    def clean_key(self, text: str) -> str:
        """Return a pasted key without quotes, `Bearer` or the name of a variable around it."""
        ...

    def store_key(self, provider: str, key: str) -> str:
        """Store the key of a provider in the home folder, and return the title of the provider.

        Raises:
            NotFound: there is no such provider.
            Conflict: the file or the environment sets its key.
        """
        ...

    def run_with_agent(self, config: str | None, work: TransportWork) -> int:
        """Run `work` on a transport whose tasks are executed in this process."""
        ...

    def run_with_records(self, config: str | None, work: TransportWork) -> int:
        """Run `work` on a transport that executes no tasks. Needs no model key."""
        ...

    def open_session(
        self, config: str | None, notify: Callable[[str], None]
    ) -> AbstractAsyncContextManager[tuple[Transport, str]]:
        """Open a session that executes its own tasks and logs to a file.

        Yields its transport and the configured language.
        """
        ...

    def check_database(self, config: str | None) -> Check:
        """Check the database without changing it."""
        ...

    def check_models(self, config: str | None) -> list[Check]:
        """Try the address and key of the model, and of its fallbacks. No model is asked.

        Raises:
            ConfigError: other settings than llm.base_url cannot be used.
        """
        ...

    def check_dead_letters(self, config: str | None) -> list[Check]:
        """Return a check that counts the dead letters; none if there are none or it is unknown."""
        ...

    def check_processes(self, config: str | None) -> list[Check]:
        """Return a check for each gateway and worker of the database; none if not known."""
        ...

    def check_sandbox(self, config: str | None) -> list[Check]:
        """Check the sandbox by trying to get out of it, one check for each way.

        Raises:
            ConfigError: the settings cannot be used.
        """
        ...

    def check_attachments(self, config: str | None) -> Check:
        """Check the store of files. A small object is written to a bucket and removed.

        Raises:
            ConfigError: the settings cannot be used.
        """
        ...

    def check_lark(self, config: str | None) -> list[Check]:
        """Check the app of the Lark channel at Lark, with some calls of its API.

        Raises:
            ConfigError: the settings cannot be used.
        """
        ...

    def check_rule(self, rule: str, *, allows: bool) -> None:
        """Check that a permission rule is valid as an allow or a deny rule.

        Raises:
            RuleError: it is invalid.
        """
        ...

    def models(self, config: str | None) -> list[ListedModel]:
        """Return the known models of every provider, the one in use first."""
        ...

    def server_models(self, config: str | None, provider: str) -> ServerModels:
        """Ask the server of a provider for its models; "" is the provider of the settings.

        Raises:
            ConfigError: the settings cannot be used, or there is no such provider.
        """
        ...

    def lessons(self, config: str | None) -> LessonAdmin:
        """Return the learned refusals of model servers.

        Raises:
            ConfigError: the settings cannot be used.
        """
        ...

    def check_refused_tools(self, config: str | None) -> list[Check]:
        """Return a check for each tool that the server of a model does not accept."""
        ...

    def profiles(self, config: str | None) -> list[ListedProfile]:
        """Return the profiles, including unusable ones.

        Raises:
            ConfigError: the settings cannot be used.
        """
        ...

    def trust_text(self, config: str | None, path: Path, content: bytes) -> bool:
        """Let agents follow a text of an instruction file; False if this cannot be stored.

        Args:
            config: the configuration file, None for the default one.
            path: the instruction file.
            content: the beginning of the file that agents get.

        Raises:
            ConfigError: the settings cannot be used.
        """

    def skills(self, config: str | None) -> SkillAdmin:
        """Return the skills of the home folder."""
        ...

    def mcp(self, config: str | None) -> McpAdmin:
        """Return the MCP servers of the settings and the home folder."""
        ...

    def hooks(self, config: str | None) -> HookAdmin:
        """Return the hooks and webhooks of the settings.

        Raises:
            ConfigError: the settings cannot be used.
        """
        ...

    def database(self, config: str | None) -> DatabaseAdmin:
        """Return the database of the settings.

        Raises:
            ConfigError: the settings cannot be used.
        """
        ...

    def tools(self) -> list[ToolItem]:
        """Return the tools of the agent."""
        ...

    def instructions(self, config: str | None, folder: Path) -> list[InstructionItem]:
        """Return the instructions that apply to tasks in a folder, the most general first.

        Raises:
            ConfigError: the settings cannot be used.
        """
        ...

    def prompt(
        self,
        config: str | None,
        folder: Path,
        *,
        profile: str | None = None,
        skills: Sequence[str] | None = None,
    ) -> FolderPrompt:
        """Return the model's input before a task in a folder.

        `profile` and `skills` are the task's; None selects the configured profile or its skills.

        Raises:
            LarkspurError, ConfigError: the services of this process cannot be opened, or the
                profile or a skill does not exist.
        """
        ...

    def serve(
        self,
        config: str | None,
        flags: Mapping[str, Any],
        *,
        with_simulator: bool = False,
        opens_page: bool = False,
        executes: bool = True,
    ) -> int:
        """Serve the gateway until a signal; without `executes` others execute the runs."""
        ...

    def work(self, config: str | None, flags: Mapping[str, Any]) -> int:
        """Execute runs beside gateways until a signal."""
        ...

    def simulate_lark(self, port: int, app_id: str | None, app_secret: str | None) -> int:
        """Serve the simulator of Lark until a signal."""
        ...
