"""Tells people outside Remit what waits for them: by webhook, mail or command.

    journal ──scan──> Follower ──queues──> notify/TARGET/N ──claim──> Delivery ──> Sender
                      one for each target                   one for each message

What to tell is derived from recorded events, so nothing is lost if the process that recorded one dies. Each target has
a stream of its own, `notify/TARGET`; who leases it follows the journal for that target. What it finds becomes a stream
below it, named by a digest of event and target, so that the same event is queued once, however often it is read. That
stream is leased, sent, retried and closed like any other work. A message may be sent twice only if a process dies
between sending it and recording that; both attempts have the same idempotency key.
"""
