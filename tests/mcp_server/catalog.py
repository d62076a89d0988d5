"""A catalog of the size that gateways meet: 430 tools of sixteen servers, worded as such servers word them.

Made of what each server keeps (its objects, with what they are about and the arguments that are their own) and of what
can be done with it. The names follow the three styles that are in use.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_ACTIONS: Final[dict[str, str]] = {
    "list": "List all {many}. Results come in pages, newest first.",
    "get": "Get one {one} by its id, with all its details.",
    "create": "Create a new {one}.",
    "update": "Update fields of an existing {one}; what is not given stays.",
    "delete": "Delete a {one} permanently. This cannot be undone.",
}

_SERVERS: Final[dict[str, Any]] = tomllib.loads((Path(__file__).parent / "catalog.toml").read_text(encoding="utf-8"))
_VERBS: Final = ("watch", "unwatch", "archive", "restore", "export", "tag")


def definitions(number: int) -> list[dict[str, Any]]:
    """So many tools, as their servers would define them; each name says its server, `github.create_issue`."""
    made = list(_made())
    for verb in _VERBS:  # what servers have besides, by their objects
        made += [
            _tool(
                server,
                _named(told["style"], verb, name),
                f"{verb.capitalize()} one of the {of['many']}. {of['about']}",
                "id",
            )
            for server, told in _SERVERS.items()
            for name, of in told["objects"].items()
        ]
    first: dict[str, dict[str, Any]] = {}
    for each in made:
        first.setdefault(each["name"], each)
    return list(first.values())[:number]


def _made() -> Iterator[dict[str, Any]]:
    for server, told in _SERVERS.items():
        style = told["style"]
        for name, of in told["objects"].items():
            many, about, own = of["many"], of["about"], of["arguments"]
            one = name.replace("_", " ") if style != "camel" else many.removesuffix("s")
            for action, wording in _ACTIONS.items():
                noun = name if action != "list" else many.replace(" ", "_").title().replace("_", "")
                shown = _named(style, action, many.replace(" ", "_") if action == "list" and style != "camel" else noun)
                arguments = {"list": "cursor page_size", "get": "id", "delete": "id"}.get(action, own)
                yield _tool(server, shown, f"{wording.format(one=one, many=many)} {about}", arguments)
            for shown, text in of.get("actions", {}).items():
                yield _tool(server, shown, text, f"id {own}")


def _named(style: str, verb: str, name: str) -> str:
    match style:
        case "camel":
            return verb + name[0].upper() + name[1:]
        case "kebab":
            return f"{verb}-{name.replace('_', '-')}"
        case _:
            return f"{verb}_{name}"


def _tool(server: str, name: str, text: str, arguments: str) -> dict[str, Any]:
    properties = {
        each: {"type": "string", "description": f"The {each.replace('_', ' ')}."} for each in arguments.split()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)[:2]}
    return {"name": f"{server}.{name}", "description": text, "inputSchema": schema}


QUESTIONS: Final[tuple[tuple[str, str], ...]] = (
    ("open a bug report in the GitHub repository", "github.create_issue"),
    ("comment on a GitHub issue", "github.add_issue_comment"),
    ("merge the pull request", "github.merge_pull_request"),
    ("which files did this PR change? show the diff", "github.get_pull_request_diff"),
    ("why did the CI job fail, logs", "github.get_job_logs"),
    ("rerun the failed CI jobs", "github.rerun_failed_jobs"),
    ("make a new branch from main", "github.create_branch"),
    ("publish a release with notes on GitHub", "github.create_release"),
    ("ask a teammate to review my pull request", "github.request_review"),
    ("send a message to the #general channel in Slack", "slack.post_message"),
    ("react to a Slack message with a thumbs-up emoji", "slack.add_reaction"),
    ("invite Bob to a channel", "slack.invite_to_channel"),
    ("post a message tomorrow morning at 9 in Slack", "slack.schedule_message"),
    ("remind me in Slack at 5 pm", "slack.create_reminder"),
    ("move a Jira ticket to Done", "jira.transitionIssue"),
    ("log two hours of time on a Jira issue", "jira.createWorklog"),
    ("find Jira issues by JQL", "jira.searchIssuesJql"),
    ("start a new sprint with a goal", "jira.createSprint"),
    ("assign the issue to Ann", "jira.assignIssue"),
    ("share a document in Drive with someone", "gdrive.share_file"),
    ("download a Google doc as PDF", "gdrive.export_file"),
    ("create a folder in the drive", "gdrive.create_folder"),
    ("send an email with an attachment", "gmail.send_email"),
    ("reply to Carol's email", "gmail.reply_to_email"),
    ("find unread mails from my boss", "gmail.search_emails"),
    ("mark an email as read", "gmail.modify_labels"),
    ("schedule a meeting with attendees on Friday", "gcalendar.create_event"),
    ("when are all attendees free for a meeting?", "gcalendar.find_free_slots"),
    ("decline a meeting invitation", "gcalendar.respond_to_event"),
    ("run a SQL select on the database", "postgres.run_query"),
    ("why is this SQL query slow", "postgres.explain_query"),
    ("what columns does a table have", "postgres.get_table"),
    ("add an index on a column", "postgres.create_index"),
    ("refund a customer's payment", "stripe.refund_payment"),
    ("cancel the subscription of a customer", "stripe.cancel_subscription"),
    ("create a 20 percent discount coupon", "stripe.create_coupon"),
    ("send an invoice to a customer", "stripe.finalize_invoice"),
    ("show logs of a crashing pod", "kubernetes.pod_logs"),
    ("scale deployment to 5 replicas", "kubernetes.scale_deployment"),
    ("roll back the last deployment", "kubernetes.rollback_deployment"),
    ("get a temporary download link of an S3 object", "aws_s3.presign-object-url"),
    ("latest exceptions with stack trace in production", "sentry.get_stack_trace"),
    ("alert us when the error rate passes a threshold", "sentry.create_alert_rule"),
    ("add a new contact to the CRM", "hubspot.create_contact"),
    ("move the deal to closed won", "hubspot.move_deal_stage"),
    ("append a to-do to a Notion page", "notion.append-blocks"),
    ("filter rows of a Notion database", "notion.query-database"),
    ("export a Figma frame as PNG", "figma.exportImage"),
    ("will it rain in Paris this weekend? weather", "weather_maps.get_forecast"),
    ("approve the travel expenses of an employee", "accounting.approveExpense"),
)
"""What people and models ask for, in their own words, and the tool that does it."""
