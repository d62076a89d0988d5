"""The parts that ship, a line for each: without its line and its folder there is a Remit without it (rule 17)."""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun


def _kinds(module: str, noun: str, ends: str) -> dict[str, str]:
    """Return the references of the kinds `NOUN_END` in a module, whose classes bear the same names."""
    return {f"{noun}_{end}": f"{module}:{f'{noun}_{end}'.title().replace('_', '')}" for end in ends.split()}


FIRST_PARTY: Final = (
    Capability(
        name="fs",
        about="Read and write files below the folders that you opened to agents.",
        providers="remit.providers.fs.provider:open_files",
        provider_ids=("builtin",),
        checks="remit.providers.fs.provider:check_folders",
    ),
    Capability(
        name="folder",
        about="Search and read the text files of a folder.",
        providers="remit.providers.folder.provider:open_search",
        provider_ids=("folder",),
    ),
    Capability(
        name="functions",
        about="Your own functions as tools.",
        providers="remit.providers.functions.provider:open_functions",
    ),
    Capability(
        name="sandbox",
        about="Run programs where they can do no harm.",
        settings="remit.sandbox.settings:SandboxSettings",
        providers="remit.sandbox.provider:open_sandbox_tools",
        provider_ids=("sandbox",),
        encloses="remit.sandbox.opening:open_enclosures",
        recipes=("remit.sandbox.recipe:run_code_snippet",),
        commands=(Command("sandbox", "Check the sandbox, and manage its workspaces.", "remit.sandbox.cli:command"),),
        checks="remit.sandbox.checks:check_sandbox",
    ),
    Capability(
        name="web",
        about="Search, fetch and read pages of the web.",
        settings="remit.providers.web.settings:WebSettings",
        providers="remit.providers.web.opening:open_web",
        provider_ids=("web", "stub_web"),
        kinds={"search_blocked": "remit.providers.web.kinds:SearchBlocked"},
        checks="remit.providers.web.opening:check_search",
        modules=("aiohttp", "lxml_html_clean", "protego", "resiliparse", "trafilatura"),
        extra="web",
    ),
    Capability(
        name="browser",
        about="Open, read and use pages in a browser.",
        settings="remit.providers.browser.settings:BrowserSettings",
        providers="remit.providers.browser.provider:open_browser",
        provider_ids=("browser",),
        checks="remit.providers.browser.checks:check_browser",
        modules=("playwright",),
        extra="browser",
    ),
    Capability(
        name="documents",
        about="Read, search and edit documents: PDF, Word, HTML, Markdown, text, CSV, notebooks.",
        settings="remit.providers.doc.settings:DocumentSettings",
        providers="remit.providers.doc.provider:open_documents",
        provider_ids=("doc",),
        recipes=("remit.recipes.edit_docs:edit_docs",),
        modules=("pypdfium2",),
        extra="documents",
    ),
    Capability(
        name="mcp",
        about="The tools of MCP servers.",
        providers="remit.providers.mcp.opening:open_servers",
        modules=("mcp",),
        extra="mcp",
    ),
    Capability(
        name="runners",
        about="Tools that run on other servers of Remit.",
        settings="remit.providers.runners.settings:RunnerSettings",
        providers="remit.providers.runners.opening:open_runners",
    ),
    Capability(
        name="agents",
        about="Agents: a model that works with tools until it is done.",
        recipes=(
            "remit.agents.recipes.agent:agent",
            "remit.agents.recipes.ask_model:ask_model",
            "remit.agents.recipes.conversation:conversation",
        ),
        nouns=(
            Noun(
                name="conversations",
                kind="remit.agents.conversations:Conversations",
                open="remit.agents.conversations:open_conversations",
                remote="remit.agents.remote:RemoteConversations",
            ),
        ),
        routes="remit.agents.routes:ROUTES",
        commands=(
            Command(
                word="chat",
                section="Run",
                about="Continue an agent's conversation, or show it.",
                command="remit.agents.commands.chat:command",
            ),
            Command(
                word="conversation",
                section="Run",
                about="Export and import agents' conversations, in OpenAI's message format.",
                command="remit.agents.commands.conversation:command",
            ),
        ),
        pages="remit.agents.pages:PAGES",
        modules=("aiohttp",),
        extra="models",
    ),
    Capability(
        name="forks",
        about="Run a job again from a step with something changed, and compare two runs.",
        nouns=(Noun(name="forks", kind="remit.forks.forks:Forks", open="remit.forks.forks:open_forks"),),
        commands=(
            Command(
                word="fork",
                section="Run",
                about="Run a job again from a step, with something changed.",
                command="remit.forks.commands.fork:command",
            ),
            Command(
                word="diff",
                section="Look",
                about="Compare two runs step by step.",
                command="remit.forks.commands.diff:command",
            ),
        ),
        pages="remit.forks.pages:PAGES",
    ),
    Capability(
        name="golden",
        about="Check recorded jobs in files against the code, tools and policy of today.",
        nouns=(Noun(name="golden", kind="remit.golden.noun:Goldens", open="remit.golden.noun:open_goldens"),),
        commands=(
            Command(
                word="golden",
                section="Look",
                about="Export recorded jobs as golden ones, which `remit check` replays.",
                command="remit.golden.commands.golden:command",
            ),
            Command(
                word="check",
                section="Look",
                about="Replay golden jobs against the code, tools, schemas and policy of today.",
                command="remit.golden.commands.check:command",
            ),
        ),
    ),
    Capability(
        name="research_report",
        about="Answer a question from files and pages of the web, with citations.",
        providers="remit.recipes.report_files:open_report",
        provider_ids=("report",),
        recipes=("remit.recipes.research_report:research_report",),
        outputs="remit.recipes.verification:reader_of",
    ),
    Capability(
        name="skills",
        about="Packages of instructions and permissions that decide what an agent may do.",
        settings="remit.skills.settings:SkillSettings",
        providers="remit.skills.provider:open_skill_tools",
        provider_ids=("skills",),
        skills="remit.skills.loaded:open_skills",
        nouns=(Noun(name="skills", kind="remit.skills.noun:SkillList", open="remit.skills.noun:open_list"),),
        kinds={
            "skill_enabled": "remit.skills.kinds:SkillEnabled",
            "skill_disabled": "remit.skills.kinds:SkillDisabled",
        },
        commands=(
            Command(
                word="skills",
                about="List skills, look at them, switch them on and off, and begin a new one.",
                command="remit.skills.commands:command",
            ),
        ),
        pages="remit.skills.pages:PAGES",
    ),
    Capability(
        name="audit",
        about="Evidence of what was recorded, for people who trust no one.",
        nouns=(
            Noun(
                name="audit",
                kind="remit.audit.noun:Audit",
                open="remit.audit.noun:open_audit",
                remote="remit.audit.remote:RemoteAudit",
            ),
        ),
        routes="remit.audit.routes:ROUTES",
        pages="remit.audit.pages:PAGES",
        settings="remit.audit.settings:AuditSettings",
        kinds={"output_read": "remit.audit.kinds:OutputRead"},
        reads="remit.audit.reading:open_reader",
        formats="remit.audit.formats.catalog:check",
        works="remit.audit.anchoring.opening:work_on_anchors",
        checks="remit.audit.noun:check_audit",
        commands=(
            Command(
                word="export",
                section="Look",
                about="Export the evidence of a job: everything recorded, in a zip that anyone can check.",
                command="remit.audit.commands.export:command",
            ),
            Command(
                word="audit",
                section="Look",
                about="Say who did, allowed and refused what, in which versions, and what is not known.",
                command="remit.audit.commands.audit:command",
            ),
        ),
    ),
    Capability(
        name="telemetry",
        about="Send spans of calls, models and jobs to an OpenTelemetry collector.",
        settings="remit.audit.telemetry.settings:TelemetrySettings",
        kinds={"telemetry_begun": "remit.audit.kinds:TelemetryBegun"},
        sends="remit.audit.telemetry.opening:send_beside",
        checks="remit.audit.telemetry.opening:check_telemetry",
    ),
    Capability(
        name="tickets",
        about="Messages that become tool runs and replies.",
        settings="remit.tickets.settings:TicketSettings",
        recipes=("remit.tickets.recipe:ticket_run",),
        nouns=(
            Noun(
                name="tickets",
                kind="remit.tickets.tickets:Tickets",
                open="remit.tickets.opening:open_tickets",
                remote="remit.tickets.remote:RemoteTickets",
            ),
        ),
        routes="remit.tickets.routes:ROUTES",
        kinds=_kinds(
            "remit.tickets.kinds", "ticket", "created leased released completed failed blocked retried derived"
        ),
        queues=("ticket",),
        works="remit.tickets.opening:work_on_tickets",
        commands=(
            Command(
                word="tickets",
                section="Work",
                about="Work with tickets: messages that become tool runs and replies.",
                command="remit.tickets.commands:command",
            ),
        ),
        pages="remit.tickets.pages:PAGES",
    ),
    Capability(
        name="work",
        about="Hand issues to executors, and take back what is proved.",
        files={"workflow.toml": "remit.work.workflow:WorkflowFile"},
        providers="remit.work.opening:open_providers",
        provider_ids=("outbox", "decision", "work"),
        recipes=("remit.work.recipe:work_run", "remit.work.decisions:work_decision"),
        nouns=(Noun(name="work", kind="remit.work.noun:Work", open="remit.work.opening:open_work"),),
        kinds={
            **_kinds("remit.work.kinds", "work", "opened run_started run_stopped written moved controlled"),
            **_kinds("remit.work.kinds", "work_result", "accepted refused discarded"),
            **_kinds("remit.work.kinds", "issue", "opened commented changed"),
            **_kinds("remit.work.kinds", "outbox", "opened announced confirmed"),
        },
        works="remit.work.control:work_on_issues",
        checks="remit.work.folder:check_work",
        commands=(
            Command(
                word="work",
                section="Work",
                about="Hand issues to coding agents, scripts and people, and take back only what is proved.",
                command="remit.work.commands:command",
            ),
        ),
        pages="remit.work.pages:PAGES",
    ),
    Capability(
        name="recorder",
        about="Sign what is recorded while it is recorded, and hold what was signed as a witness.",
        settings="remit.recorder.settings:RecorderSettings",
        kinds=_kinds("remit.recorder.kinds", "recorder", "opened checkpoint closed"),
        works="remit.recorder.opening:work_on_checkpoints",
        commands=(
            Command(
                word="recorder",
                about="Sign what is recorded: the key, and checkpoints.",
                command="remit.recorder.commands:command",
            ),
            Command(
                word="witness",
                about="Hold the checkpoints of journals, and refuse what does not continue them.",
                command="remit.recorder.commands:witness_command",
            ),
        ),
        verifies="remit.recorder.opening:open_verifier",
        checks="remit.recorder.opening:check_recorder",
        modules=("cryptography",),
        extra="audit",
    ),
    Capability(
        name="drift",
        about="Compare what is recorded with today's tools, models, code and rules.",
        nouns=(Noun(name="drift", kind="remit.drift.noun:Drift", open="remit.drift.noun:open_drift"),),
        commands=(
            Command(
                word="drift",
                section="Look",
                about="Say what is different today from what was recorded.",
                command="remit.drift.commands.drift:command",
            ),
            Command(
                word="versions",
                section="Look",
                about="Say which versions open jobs need, and what can be retired.",
                command="remit.drift.commands.versions:command",
            ),
            Command(
                word="policy backtest",
                section="Commands",
                about="Take recorded decisions again under other rules.",
                command="remit.drift.commands.backtest:command",
            ),
        ),
    ),
    Capability(
        name="retention",
        about="Keep records as long as they must be kept, and remove the rest with stubs in their place.",
        settings="remit.retention.settings:RetentionSettings",
        nouns=(Noun("retention", "remit.retention.pruning:Retention", "remit.retention.pruning:open_retention"),),
        works="remit.retention.opening:keep_to_rules",
        commands=(
            Command(
                word="journal prune",
                section="Commands",
                about="Remove records that have been kept long enough, and leave a stub in the place of each.",
                command="remit.retention.commands.prune:command",
            ),
            Command(
                word="journal backup",
                section="Commands",
                about="Back up a journal that is a file, while workers and servers go on.",
                command="remit.retention.commands.backup:command",
            ),
            Command(
                word="erase",
                about="Erase every value that was recorded about a subject.",
                command="remit.retention.commands.erase:command",
            ),
        ),
        checks="remit.retention.opening:check_retention",
    ),
    Capability(
        name="dbos",
        about="Place jobs on machines with DBOS: its queues, priorities and limits.",
        settings="remit.engines.settings:DbosSettings",
        engine="remit.engines.dbos:DbosEngine",
        modules=("dbos",),
        extra="dbos",
    ),
    Capability(
        name="notify",
        about="Tell people what waits or failed, by mail, a webhook or a program.",
        settings="remit.notify.settings:NotifySettings",
        nouns=(
            Noun(
                "notifications", "remit.notify.notifications:Notifications", "remit.notify.opening:open_notifications"
            ),
        ),
        kinds={
            "notify_target_added": "remit.notify.kinds:TargetAdded",
            "notification_queued": "remit.notify.kinds:NotificationQueued",
            "notification_sent": "remit.notify.kinds:NotificationSent",
            "notification_failed": "remit.notify.kinds:NotificationFailed",
            "notification_dropped": "remit.notify.kinds:NotificationDropped",
        },
        works="remit.notify.opening:work_on_notifications",
        commands=(
            Command(
                word="notify",
                about="See who is told what waits or failed, and test it.",
                command="remit.notify.commands:command",
            ),
        ),
        checks="remit.notify.opening:check_targets",
    ),
)
"""The parts that ship, in the order in which their providers are asked."""
