"""Tells people outside Remit what waits for them: by webhook, mail or command.

    journal ──scan──> Follower ──queues──> notify/TARGET/N ──claim──> Delivery ──> Sender
                      one for each target                   one for each message

What to tell is derived from recorded events, so nothing is lost if the process that recorded one dies. Each target has
a stream of its own, `notify/TARGET`; who leases it follows the journal for that target. What it finds becomes a stream
below it, named by a digest of event and target, so that the same event is queued once, however often it is read. That
stream is leased, sent, retried and closed like any other work. A message may be sent twice only if a process dies
between sending it and recording that; both attempts have the same idempotency key.
"""

from __future__ import annotations

from typing import Final

from remit.capability import Capability, Command, Noun

CAPABILITIES: Final = (
    Capability(
        name="people",
        about="Say whose an account on a channel is.",
        settings="remit.parts.notify.settings:PeopleSettings",
        stand_ins="remit.parts.notify.people:open_stand_ins",
    ),
    Capability(
        name="notify",
        about="Tell people what waits or failed, by mail, a webhook or a program.",
        settings="remit.parts.notify.settings:NotifySettings",
        nouns=(
            Noun(
                "notifications",
                "remit.parts.notify.notifications:Notifications",
                "remit.parts.notify.wiring:open_notifications",
            ),
            Noun("devices", "remit.parts.notify.devices:Devices", "remit.parts.notify.wiring:open_devices"),
        ),
        kinds={
            "notify_target_added": "remit.parts.notify.kinds:TargetAdded",
            "notify_polling_changed": "remit.parts.notify.kinds:PollingChanged",
            "push_subscribed": "remit.parts.notify.kinds:PushSubscribed",
            "push_ended": "remit.parts.notify.kinds:PushEnded",
            "notification_queued": "remit.parts.notify.kinds:NotificationQueued",
            "notification_sent": "remit.parts.notify.kinds:NotificationSent",
            "notification_failed": "remit.parts.notify.kinds:NotificationFailed",
            "notification_dropped": "remit.parts.notify.kinds:NotificationDropped",
            "notify_answer_received": "remit.parts.notify.kinds:AnswerReceived",
            "notify_update_queued": "remit.parts.notify.kinds:UpdateQueued",
            "notify_answer_settled": "remit.parts.notify.kinds:AnswerSettled",
        },
        pages="remit.parts.notify.pages:PAGES",
        serves="remit.parts.notify.wiring:open_mounts",
        works="remit.parts.notify.wiring:work_on_notifications",
        commands=(
            Command(
                word="notify",
                about="See who is told what waits or failed, and test it.",
                command="remit.parts.notify.commands:command",
            ),
        ),
        checks="remit.parts.notify.wiring:check_targets",
    ),
)
