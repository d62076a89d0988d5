"""The functions a group of commits is made of; those of a claim stand in queue.py.

A group of commits is one statement, and so one round trip and one transaction. It calls

- `fold` with appends that only add events, each to another stream: two statements, however many there are. It returns
  the places of those that were refused, from 1;
- `each` with commits of any kind, one after the other. It returns the places of those that were refused, from -1 down.
  Where one that spans several streams is refused it raises `RM001`, which undoes the whole group: its caller then sends
  the commits one by one;
- `done` with both, which leaves in `writers` that this group was the last of its writer, and what was refused: a
  process that lost the connection in the middle of a commit learns its outcome there, or uses up its number. A
  group that arrives late, over a connection that was given up since, is refused with `RM002`. Where the journal runs
  no jobs (standing.py) it is refused with `RM003`;
- `aside` instead of `done`, by what is written to such a journal too. With a time, it first waits until no other group
  is under way, and is refused with `RM004` while someone holds a lease then: no group that comes later misses what it
  writes.

Heads are locked in the order of their names, so that two groups rarely wait for each other in a circle; where they do,
PostgreSQL ends one of them, and it is sent again.
"""

from __future__ import annotations

from typing import Final

from remit.journal.postgres.queue import FUNCTIONS as QUEUE
from remit.journal.retirement import RETIRED, STREAM

CONFLICT: Final = "RM001"
LATE: Final = "RM002"
ENDED: Final = "RM003"
HELD: Final = "RM004"

_DONE: Final = f"""
CREATE OR REPLACE FUNCTION runs_jobs() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    standing text;
BEGIN
    SELECT state || ' ' || title INTO standing FROM heads WHERE stream = '{STREAM}' AND state IN {RETIRED};
    IF FOUND THEN
        RAISE EXCEPTION '%', standing USING ERRCODE = 'RM003';
    END IF;
    RETURN true;
END $$;
CREATE OR REPLACE FUNCTION done(me bigint, number bigint, flush boolean, moved boolean, missed int[])
RETURNS int[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM runs_jobs();
    RETURN aside(me, number, flush, moved, missed, NULL);
END $$;
CREATE OR REPLACE FUNCTION aside(
    me bigint, number bigint, flush boolean, moved boolean, missed int[], moment bigint
) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
    held text;
BEGIN
    IF moment IS NOT NULL THEN
        LOCK TABLE heads IN EXCLUSIVE MODE;
        SELECT count(*) || ' ' || min(stream) INTO held FROM heads
            WHERE lease_owner IS NOT NULL AND NOT closed AND lease_until > moment;
        IF held IS NOT NULL THEN
            RAISE EXCEPTION '%', held USING ERRCODE = 'RM004';
        END IF;
    END IF;
    UPDATE writers SET groups = number, refused = missed, at = now() WHERE id = me AND groups = number - 1;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'this group came too late' USING ERRCODE = 'RM002';
    END IF;
    IF NOT flush THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    PERFORM pg_notify(current_schema() || '_changed', CASE WHEN moved THEN 'heads' ELSE 'events' END);
    RETURN missed;
END $$;
"""  # noqa: S608 - fixed parts

_FOLD: Final = """
CREATE OR REPLACE FUNCTION fold(
    streams text[], seqs bigint[], epochs bigint[], hashes bytea[], lasts bigint[], chained bytea[], ats bigint[],
    owners int[], places bigint[], kinds text[], times bigint[], payloads bytea[], links bytea[], seals bytea[]
) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
    ids bigint[] := array_fill(NULL::bigint, ARRAY[cardinality(streams)]);
    moved record;
BEGIN
    FOR moved IN
        UPDATE heads h SET seq = g.last, hash = g.chain, updated_at = g.at, seal = g.seal
        FROM unnest(streams, seqs, epochs, hashes, lasts, chained, ats, seals) WITH ORDINALITY
            AS g (stream, seq, epoch, hash, last, chain, at, seal, place)
        WHERE h.stream = g.stream AND h.seq = g.seq AND h.epoch = g.epoch AND h.hash = g.hash
        RETURNING h.id, g.place::int AS place
    LOOP
        ids[moved.place] := moved.id;
    END LOOP;
    INSERT INTO events (stream, seq, kind, at, data, hash)
        SELECT ids[e.owner], e.seq, e.kind, e.at, e.data, e.hash
        FROM unnest(owners, places, kinds, times, payloads, links) AS e (owner, seq, kind, at, data, hash)
        WHERE ids[e.owner] IS NOT NULL;
    RETURN ARRAY(SELECT place::int FROM generate_series(1, cardinality(streams)) AS place WHERE ids[place] IS NULL);
END $$;
"""

_EACH: Final = """
CREATE OR REPLACE FUNCTION each(
    touched text[], ends int[], stamps bigint[],
    streams text[], sorts text[], seqs bigint[], epochs bigint[], hashes bytea[], seen bigint[],
    lasts bigint[], chained bytea[], ats bigint[], patches jsonb[], event_ends int[],
    places bigint[], kinds text[], times bigint[], payloads bytea[], links bytea[],
    wake_ends int[], woken text[],
    blob_ends int[], digests text[], contents bytea[], untils bigint[], seals bytea[]
) RETURNS int[] LANGUAGE plpgsql AS $$
DECLARE
    missed int[] := '{}';
    first int := 1; first_event int := 1; first_wake int := 1; first_blob int := 1;
    found_id bigint; p jsonb; accepted boolean;
BEGIN
    PERFORM 1 FROM heads WHERE stream = ANY (touched) ORDER BY stream FOR NO KEY UPDATE;
    FOR c IN 1 .. cardinality(ends) LOOP
        accepted := true;
        FOR a IN first .. ends[c] LOOP
            p := patches[a];
            found_id := NULL;
            IF seqs[a] = 0 AND chained[a] IS NOT NULL THEN
                INSERT INTO heads (
                    stream, kind, state, seq, hash, due_at, priority, closed, route, subject, title, labels,
                    created_at, updated_at, seal, share
                ) VALUES (
                    streams[a], sorts[a], coalesce(p ->> 'state', ''), lasts[a], chained[a], (p ->> 'due_at')::bigint,
                    coalesce((p ->> 'priority')::bigint, 0), coalesce((p ->> 'closed')::boolean, false),
                    coalesce(p ->> 'route', ''), coalesce(p ->> 'subject', ''), coalesce(p ->> 'title', ''),
                    coalesce(p -> 'labels', '{}'), ats[a], ats[a], seals[a],
                    coalesce(p ->> 'share', '')
                ) ON CONFLICT (stream) DO NOTHING RETURNING id INTO found_id;
            ELSE
                UPDATE heads SET seq = lasts[a], hash = coalesce(chained[a], hash), updated_at = ats[a],
                    seal = seals[a],
                    state = CASE WHEN p ? 'state' THEN p ->> 'state' ELSE state END,
                    due_at = CASE WHEN p ? 'due_at' THEN (p ->> 'due_at')::bigint ELSE due_at END,
                    priority = CASE WHEN p ? 'priority' THEN (p ->> 'priority')::bigint ELSE priority END,
                    closed = CASE WHEN p ? 'closed' THEN (p ->> 'closed')::boolean ELSE closed END,
                    route = CASE WHEN p ? 'route' THEN p ->> 'route' ELSE route END,
                    title = CASE WHEN p ? 'title' THEN p ->> 'title' ELSE title END,
                    labels = CASE WHEN p ? 'labels' THEN p -> 'labels' ELSE labels END,
                    share = CASE WHEN p ? 'share' THEN p ->> 'share' ELSE share END,
                    lease_owner = CASE WHEN (p ->> 'release')::boolean THEN NULL ELSE lease_owner END,
                    lease_until = CASE WHEN (p ->> 'release')::boolean THEN NULL ELSE lease_until END
                WHERE stream = streams[a] AND seq = seqs[a] AND epoch = epochs[a] AND hash = hashes[a]
                    AND (seen[a] IS NULL OR wakes = seen[a])
                RETURNING id INTO found_id;
            END IF;
            IF found_id IS NULL THEN
                IF first < ends[c] THEN
                    RAISE EXCEPTION 'refused' USING ERRCODE = 'RM001';
                END IF;
                missed := missed || -c;
                accepted := false;
            ELSIF first_event <= event_ends[a] THEN
                INSERT INTO events (stream, seq, kind, at, data, hash)
                SELECT found_id, places[e], kinds[e], times[e], payloads[e], links[e]
                FROM generate_series(first_event, event_ends[a]) AS e;
            END IF;
            IF found_id IS NOT NULL AND p ? 'entries' THEN
                DELETE FROM labels WHERE head = found_id AND NOT (p -> 'entries') ? key;
                INSERT INTO labels AS l (head, key, value, type, size)
                SELECT found_id, e.key, e.value ->> 0, e.value ->> 1, (e.value ->> 2)::float8
                FROM jsonb_each(p -> 'entries') AS e
                ON CONFLICT (head, key) DO UPDATE
                SET value = excluded.value, type = excluded.type, size = excluded.size
                WHERE l.value <> excluded.value;
            END IF;
            first_event := event_ends[a] + 1;
        END LOOP;
        IF accepted AND first_blob <= blob_ends[c] THEN
            INSERT INTO blobs AS b (digest, data, at, until)
            SELECT DISTINCT ON (digests[d]) digests[d], contents[d], stamps[c], untils[d]
            FROM generate_series(first_blob, blob_ends[c]) AS d ORDER BY digests[d], untils[d] DESC NULLS FIRST
            ON CONFLICT (digest) DO UPDATE SET
                data = CASE WHEN octet_length(excluded.data) = 0 THEN excluded.data ELSE b.data END,
                until = CASE WHEN octet_length(excluded.data) = 0 AND octet_length(b.data) > 0 THEN NULL
                    ELSE excluded.until END
            WHERE octet_length(excluded.data) = 0 AND octet_length(b.data) > 0
                OR b.until IS NOT NULL AND (excluded.until IS NULL OR excluded.until > b.until);
        END IF;
        IF accepted AND first_wake <= wake_ends[c] THEN
            FOR w IN first_wake .. wake_ends[c] LOOP
                UPDATE heads SET wakes = wakes + 1, due_at =
                    CASE WHEN lease_owner IS NULL THEN least(coalesce(due_at, stamps[c]), stamps[c]) ELSE due_at END
                WHERE stream = woken[w] AND NOT closed;
            END LOOP;
        END IF;
        first := ends[c] + 1; first_wake := wake_ends[c] + 1; first_blob := blob_ends[c] + 1;
    END LOOP;
    RETURN missed;
END $$;
"""


def _unsealed(function: str) -> str:
    """Say what a process of a Remit without seals calls, with one argument less: the heads that it writes have none."""
    head, _, parameters = function.partition(") RETURNS")[0].partition("(")
    parameters = parameters.removesuffix(", seals bytea[]\n")
    names = ", ".join([parameter.split()[0] for parameter in parameters.split(",")])
    return f"""{head}({parameters}) RETURNS int[] LANGUAGE sql AS $$
    SELECT {head.split()[-1]}({names}, array_fill(''::bytea, ARRAY[cardinality(streams)]));
$$;
"""


_OLDER: Final = _unsealed(_FOLD) + _unsealed(_EACH)

FUNCTIONS: Final = _DONE + _FOLD + _EACH + _OLDER + QUEUE
"""Makes them all, or makes them again."""
