"""The functions that say which streams want a worker, in which order, and lease them."""

from __future__ import annotations

from typing import Final

from remit.journal.event import OPEN_STATES

_USED: Final = """
CREATE OR REPLACE FUNCTION routes_used(sort text, served text[]) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE
    used text[] := '{}';
    one text;
    last text;
BEGIN
    IF cardinality(served) > 0 THEN
        RETURN ARRAY(SELECT DISTINCT r FROM unnest(array_append(served, '')) AS r);
    END IF;
    SELECT min(route), max(route) INTO one, last FROM heads
        WHERE kind = sort AND due_at IS NOT NULL AND NOT closed;
    WHILE one IS NOT NULL LOOP
        used := used || one;
        EXIT WHEN one = last;
        SELECT min(route) INTO one FROM heads WHERE kind = sort AND route > one AND due_at IS NOT NULL AND NOT closed;
    END LOOP;
    RETURN used;
END $$;
"""

_TURNS: Final = """
CREATE OR REPLACE FUNCTION turns(sort text, ways text[], rank bigint, after text, most int)
RETURNS text[] LANGUAGE plpgsql STABLE AS $$
DECLARE
    found text[] := '{}';
    last text := after;
    share_next text;
    wrapped boolean := false;
BEGIN
    FOR looks IN 1 .. most LOOP
        SELECT min(s.share) INTO share_next FROM unnest(ways) AS way, LATERAL (
            SELECT min(h.share) AS share FROM heads h
            WHERE h.kind = sort AND h.route = way AND h.priority = rank AND h.share > last
                AND h.due_at IS NOT NULL AND NOT h.closed) AS s;
        IF share_next IS NULL AND NOT wrapped THEN
            wrapped := true;
            SELECT min(s.share) INTO share_next FROM unnest(ways) AS way, LATERAL (
                SELECT min(h.share) AS share FROM heads h
                WHERE h.kind = sort AND h.route = way AND h.priority = rank
                    AND h.due_at IS NOT NULL AND NOT h.closed) AS s;
        END IF;
        EXIT WHEN share_next IS NULL OR wrapped AND share_next > after;
        found := found || share_next;
        last := share_next;
    END LOOP;
    RETURN found;
END $$;
"""

_QUEUE: Final = """
CREATE OR REPLACE FUNCTION {name}(
    sort text, moment bigint, most int, wanted text[], served text[], after text
) RETURNS TABLE (head heads, turn text) LANGUAGE plpgsql AS $$
DECLARE
    routes text[] := routes_used(sort, served);
    taken bigint[] := '{{}}';
    shares text[];
    each_share int;
    looks int;
    rank bigint := 9223372036854775807;
    top bigint;
    found_rank bigint;
    one text;
    due heads;
BEGIN
    -- One index search per route and priority in use, however many streams wait.
    turn := after;
    LOOP
        top := NULL;
        FOREACH one IN ARRAY routes LOOP
            SELECT max(h.priority) INTO found_rank FROM heads h
                WHERE h.kind = sort AND h.route = one AND h.priority < rank AND h.due_at IS NOT NULL AND NOT h.closed;
            top := greatest(top, found_rank);
        END LOOP;
        rank := top;
        EXIT WHEN rank IS NULL OR cardinality(taken) >= most;
        shares := turns(sort, routes, rank, turn, 2);
        IF cardinality(shares) > 1 AND most - cardinality(taken) < (SELECT count(*) FROM (
            SELECT FROM unnest(routes) AS way, LATERAL (
                SELECT  FROM heads h
                WHERE h.kind = sort AND h.route = way AND h.priority = rank AND h.due_at <= moment
                    AND h.due_at IS NOT NULL AND NOT h.closed
                    AND (h.lease_owner IS NULL OR h.lease_until <= moment)
                    AND (cardinality(wanted) = 0 OR h.state = ANY (wanted)) AND NOT h.id = ANY (taken)
                ORDER BY h.due_at, h.id LIMIT most - cardinality(taken) + 1
            ) AS present LIMIT most - cardinality(taken) + 1) AS crowd)
        THEN
            -- Shares of which nothing may be due are looked at: few at first, then more.
            FOREACH looks IN ARRAY ARRAY[2, 32] LOOP
                EXIT WHEN cardinality(taken) >= most;
                shares := turns(sort, routes, rank, turn, most - cardinality(taken) + looks);
                -- Once around takes no more than each share has of the room, so that few rows are looked at.
                each_share := 1 + 2 * (most - cardinality(taken)) / greatest(cardinality(shares), 1);
                FOR due IN SELECT (one_of.h).* FROM (
                    SELECT q AS h, place, row_number() OVER (PARTITION BY place ORDER BY q.due_at, q.id) AS round
                    FROM unnest(shares) WITH ORDINALITY AS s (share, place), unnest(routes) AS way, LATERAL (
                        SELECT h.* FROM heads h
                WHERE h.kind = sort AND h.route = way AND h.priority = rank AND h.share = s.share AND h.due_at <= moment
                    AND h.due_at IS NOT NULL AND NOT h.closed
                    AND (h.lease_owner IS NULL OR h.lease_until <= moment)
                    AND (cardinality(wanted) = 0 OR h.state = ANY (wanted)) AND NOT h.id = ANY (taken)
                ORDER BY h.due_at, h.id LIMIT each_share{lock}
                    ) AS q) AS one_of ORDER BY round, place LIMIT most - cardinality(taken)
                LOOP
                    taken := taken || due.id;
                    head := due;
                    turn := due.share;
                    RETURN NEXT;
                END LOOP;
                IF cardinality(taken) < most THEN
                    turn := coalesce(shares[cardinality(shares)], turn);
                END IF;
            END LOOP;
        END IF;
        IF cardinality(routes) = 1 THEN
            FOR due IN SELECT h.* FROM heads h
                WHERE h.kind = sort AND h.route = routes[1] AND h.priority = rank AND h.due_at <= moment
                    AND h.due_at IS NOT NULL AND NOT h.closed
                    AND (h.lease_owner IS NULL OR h.lease_until <= moment)
                    AND (cardinality(wanted) = 0 OR h.state = ANY (wanted)) AND NOT h.id = ANY (taken)
                ORDER BY h.due_at, h.id LIMIT most - cardinality(taken){lock}
            LOOP
                taken := taken || due.id;
                head := due;
                RETURN NEXT;
            END LOOP;
        ELSE
            FOR due IN SELECT one_of.* FROM unnest(routes) AS way, LATERAL (
                SELECT h.* FROM heads h
                WHERE h.kind = sort AND h.route = way AND h.priority = rank AND h.due_at <= moment
                    AND h.due_at IS NOT NULL AND NOT h.closed
                    AND (h.lease_owner IS NULL OR h.lease_until <= moment)
                    AND (cardinality(wanted) = 0 OR h.state = ANY (wanted)) AND NOT h.id = ANY (taken)
                ORDER BY h.due_at, h.id LIMIT most - cardinality(taken){lock}
            ) AS one_of ORDER BY one_of.due_at, one_of.id LIMIT most - cardinality(taken)
            LOOP
                taken := taken || due.id;
                head := due;
                RETURN NEXT;
            END LOOP;
        END IF;
    END LOOP;
END $$;
"""
"""Gives due heads in their order; it passes over those that are locked and locks the others, or neither."""
_QUEUES: Final = "".join(
    _QUEUE.format(name=name, lock=lock) for name, lock in (("due", ""), ("claimable", " FOR NO KEY UPDATE SKIP LOCKED"))
)

_CLAIM: Final = f"""
CREATE OR REPLACE FUNCTION claim(
    sort text, who text, moment bigint, ends bigint, most int, wanted text[], becomes text, served text[], after text
) RETURNS TABLE (head heads, was_state text, was_owner text, was_due bigint, turn text) LANGUAGE plpgsql AS $$
DECLARE
    next_one record;
    due heads;
BEGIN
    FOR next_one IN SELECT q.head AS due, q.turn FROM claimable(sort, moment, most, wanted, served, after) AS q LOOP
        due := next_one.due;
        turn := next_one.turn;
        UPDATE heads h SET epoch = h.epoch + 1, lease_owner = who, lease_until = ends, due_at = ends,
            state = CASE WHEN h.state IN {OPEN_STATES} THEN coalesce(becomes, h.state) ELSE h.state END
        WHERE h.id = due.id RETURNING h.* INTO head;
        was_state := due.state; was_owner := due.lease_owner; was_due := due.due_at;
        RETURN NEXT;
    END LOOP;
    PERFORM runs_jobs();
END $$;
CREATE OR REPLACE FUNCTION claim(
    sort text, who text, moment bigint, ends bigint, most int, wanted text[], becomes text, served text[]
) RETURNS TABLE (head heads, was_state text, was_owner text, was_due bigint) LANGUAGE sql AS $$
    SELECT head, was_state, was_owner, was_due
    FROM claim(sort, who, moment, ends, most, wanted, becomes, served, '');
$$;
"""  # noqa: S608 - fixed parts

_DUE: Final = """
CREATE OR REPLACE FUNCTION next_due(sort text, served text[]) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    rank bigint;
    one text;
    due bigint;
    earliest bigint;
BEGIN
    FOREACH one IN ARRAY routes_used(sort, served) LOOP
        rank := 9223372036854775807;
        LOOP
            SELECT max(h.priority) INTO rank FROM heads h
                WHERE h.kind = sort AND h.route = one AND h.priority < rank AND h.due_at IS NOT NULL AND NOT h.closed;
            EXIT WHEN rank IS NULL;
            SELECT min(h.due_at) INTO due FROM heads h
                WHERE h.kind = sort AND h.route = one AND h.priority = rank AND h.due_at IS NOT NULL AND NOT h.closed;
            earliest := least(earliest, due);
        END LOOP;
    END LOOP;
    RETURN earliest;
END $$;
"""

FUNCTIONS: Final = _USED + _TURNS + _QUEUES + _CLAIM + _DUE
"""Makes them all, or makes them again."""
