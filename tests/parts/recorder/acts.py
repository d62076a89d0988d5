"""What somebody who can write to the journal, and has no key, does to it; and what its owner does."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from remit.evidence.merkle import Tree
from remit.evidence.note import Checkpoint, encoded, notes_in
from remit.journal.event import link, root
from remit.parts.recorder.log import hashed, leaves_of, read, sessions
from remit_testing.journal.storage import note
from tests.parts.recorder.world import Process, World, signer
from tests.security.test_seals import Thief

Act = Callable[["Scene"], Awaitable[None]]


class Scene:
    """Three checkpoints over two jobs, kept elsewhere as well; then somebody comes."""

    def __init__(self, world: World, thief: Thief) -> None:
        self.world, self.thief = world, thief
        self.process: Process = world.start()
        self.notes: str | None = ""
        """What the reader compares with; None: everything that was kept elsewhere."""
        self.keys = world.keys

    async def tell(self) -> None:
        for _ in range(3):
            await self.record()
            await self.process.look(at_once=True)
            self.world.clock.advance(1)

    async def record(self) -> None:
        journal = self.process.journal
        for stream in ("job/1", "job/2"):
            writer = journal.writer(stream, "job", await journal.head(stream))
            await journal.append(writer, note(1), note(2), synced=True)

    async def end(self) -> None:
        await self.world.kill(self.process)

    async def state(self) -> list[tuple[Any, ...]]:
        """How far every stream is."""
        return await self.thief.rows("SELECT id, stream, seq, hash, state, closed FROM heads")

    async def put_back(self, state: list[tuple[Any, ...]]) -> None:
        """Put every stream back to an earlier state."""
        then = {row[0]: row for row in state}
        for number, *_ in await self.state():
            if number not in then:
                await self.remove(number)
                continue
            _, _, seq, chained, how, closed = then[number]
            await self.thief.run("DELETE FROM events WHERE stream = $1 AND seq > $2", number, seq)
            await self.thief.run(
                "UPDATE heads SET seq = $1, hash = $2, state = $3 WHERE id = $4", seq, chained, how, number
            )
            await self.thief.run("UPDATE heads SET closed = $1 WHERE id = $2", closed, number)
        await self.thief.run("DELETE FROM folds")

    async def remove(self, number: int) -> None:
        await self.thief.run("DELETE FROM events WHERE stream = $1", number)
        await self.thief.run("DELETE FROM heads WHERE id = $1", number)

    async def number(self, stream: str) -> int:
        return next(int(row[0]) for row in await self.state() if row[1] == stream)

    async def cut(self, stream: str, events: int) -> None:
        """Take the newest events of a stream away, and its head back."""
        number = await self.number(stream)
        rows = await self.thief.rows(f"SELECT seq, hash FROM events WHERE stream = {number} ORDER BY seq")
        seq, chained = rows[-1 - events]
        await self.thief.run("DELETE FROM events WHERE stream = $1 AND seq > $2", number, seq)
        await self.thief.run("UPDATE heads SET seq = $1, hash = $2 WHERE id = $3", seq, chained, number)

    async def rewrite(self, stream: str, change: Callable[[int, str, bytes], bytes]) -> dict[bytes, bytes]:
        """Change events of a stream and chain all of them anew; the new chain values by the old ones."""
        number, chained, changed = await self.number(stream), root(stream), dict[bytes, bytes]()
        rows = await self.thief.rows(
            f"SELECT seq, kind, at, data, hash FROM events WHERE stream = {number} ORDER BY seq"
        )
        for seq, kind, at, data, before in rows:
            new = change(seq, kind, bytes(data))
            chained = changed[bytes(before)] = link(chained, seq, at, kind, new)
            sql = "UPDATE events SET data = $1, hash = $2 WHERE stream = $3 AND seq = $4"
            await self.thief.run(sql, new, chained, number, seq)
        await self.thief.run("UPDATE heads SET hash = $1 WHERE id = $2", chained, number)
        return changed

    async def sign_anew(self, forger: int) -> None:
        """Make the log's leaves, roots and signatures anew with another key."""
        async with self.world.opened() as journal:
            session = await read(journal, await anext(sessions(journal)))
            hashes = {head: await journal.read(head) for head in ("job/1", "job/2", "recorder/1")}
            tree, made, key = Tree(), list[dict[str, Any]](), signer(self.world.origin, forger)
            for said in session.checkpoints:
                ends = [
                    end._replace(hash=hashes[end.stream][end.seq - 1].hash) for end in await leaves_of(journal, said)
                ]
                tree = tree.grown(hashed(ends))
                line = key.line(Checkpoint(self.world.origin, tree.size, tree.root))
                leaves = [[end.stream, end.seq, end.hash.hex()] for end in ends]
                made.append({"root": encoded(tree.root), "signature": line, "leaves": leaves})

        def change(seq: int, kind: str, data: bytes) -> bytes:
            if kind == "recorder_opened":
                return re.sub(rb'"key":"[^"]+"', f'"key":"{key.key}"'.encode(), data)
            new = made[seq - 2] if kind == "recorder_checkpoint" else {}
            return json.dumps({**json.loads(data), **new}, separators=(",", ":"), ensure_ascii=False).encode()

        await self.rewrite("recorder/1", change)


def other(seq: int, _kind: str, data: bytes) -> bytes:
    return data.replace(b":", b": ", 1) if seq == 2 else data


# --- what somebody does


async def nothing(scene: Scene) -> None:
    await scene.end()


async def leave_open(scene: Scene) -> None:
    """Events come after the last checkpoint."""
    await scene.record()
    await scene.end()


async def close(scene: Scene) -> None:
    scene.world.processes.remove(scene.process)
    await scene.process.end()


async def rotate(scene: Scene) -> None:
    await close(scene)
    scene.world.rotate()
    scene.process = scene.world.start()
    await scene.record()
    await scene.process.look(at_once=True)
    await close(scene)


async def go_on(scene: Scene) -> None:
    """The reader has an earlier checkpoint; nobody did anything."""
    scene.notes = scene.world.notes.read_text()
    await scene.record()
    await scene.process.look(at_once=True)
    await close(scene)


async def cut_everything(scene: Scene) -> None:
    """All of the journal is put back to the checkpoint before; the reader has that one, and no later one."""
    held = scene.world.notes.read_text()
    state = await scene.state()
    await scene.record()
    await scene.process.look(at_once=True)
    await close(scene)
    await scene.put_back(state)
    scene.notes = held if scene.notes is None else scene.notes


async def put_back(scene: Scene) -> None:
    """All of the journal is put back; the reader has what was kept elsewhere."""
    state = await scene.state()
    await scene.record()
    await scene.process.look(at_once=True)
    await scene.end()
    await scene.put_back(state)


async def put_back_and_go_on(scene: Scene) -> None:
    """The same, and then the real recorder signs another history."""
    await put_back(scene)
    scene.process = scene.world.start()
    scene.world.clock.advance(1_000)
    await scene.record()
    await scene.process.recorder.look(at_once=True)
    await scene.process.recorder.look(at_once=True)
    await scene.end()


async def other_run(scene: Scene) -> None:
    """The journal of another run, under another name, is shown."""
    scene.world.origin = scene.process.recorder._terms.origin
    await scene.end()
    kept = scene.world.notes.read_text()
    scene.notes = kept.replace(notes_in(kept)[-1].checkpoint.body, "")
    lines = Checkpoint(scene.world.origin, 999, b"x" * 32)
    scene.notes = lines.signed([scene.world.signers[-1].line(lines)])


async def fork(scene: Scene) -> None:
    """The key signed two histories of one length; the other one is shown."""
    await scene.end()
    last = notes_in(scene.world.notes.read_text())[-1].checkpoint
    lines = Checkpoint(last.origin, last.size, b"y" * 32)
    scene.notes = lines.signed([scene.world.signers[0].line(lines)])


async def both_branches(scene: Scene) -> None:
    """Two histories of a stream stand in the log."""
    await scene.rewrite("job/1", other)
    await scene.record()
    await scene.process.recorder.look(at_once=True)
    await scene.end()


async def take_over_without_handover(scene: Scene) -> None:
    """Another key goes on with the log, and no one who is believed handed it over."""
    await scene.end()
    scene.world.signers = [signer(scene.world.origin, 66)]
    scene.world.clock.advance(1_000)
    scene.process = scene.world.start()
    await scene.record()
    await scene.process.recorder.look(at_once=True)
    await scene.end()


async def cut_tail(scene: Scene) -> None:
    await scene.end()
    await scene.cut("job/1", 1)


async def cut_uncovered(scene: Scene) -> None:
    """What came after the last checkpoint is taken away: nothing can find that."""
    state = await scene.state()
    await scene.record()
    await scene.end()
    await scene.put_back(state)


async def remove_stream(scene: Scene) -> None:
    await scene.end()
    await scene.remove(await scene.number("job/2"))


async def remove_log(scene: Scene) -> None:
    await scene.end()
    await scene.remove(await scene.number("recorder/1"))


async def remove_log_and_key(scene: Scene) -> None:
    """The log is taken away, before a reader who has the second place, and does not know the key."""
    await remove_log(scene)
    scene.keys = []


async def remove_session(scene: Scene) -> None:
    await rotate(scene)
    await scene.remove(await scene.number("recorder/1"))


async def change(scene: Scene) -> None:
    """One event, and nothing else."""
    await scene.end()
    number = await scene.number("job/1")
    await scene.thief.run("UPDATE events SET data = $1 WHERE stream = $2 AND seq = 2", b'{"step":"9","time":9}', number)


async def change_time(scene: Scene) -> None:
    await scene.end()
    await scene.thief.run("UPDATE events SET at = at + 1 WHERE stream = $1", await scene.number("job/1"))


async def rewrite(scene: Scene) -> None:
    """A stream is written again, with every hash right."""
    await scene.end()
    await scene.rewrite("job/1", other)


async def remove_in_the_middle(scene: Scene) -> None:
    await scene.end()
    number = await scene.number("job/1")
    await scene.thief.run("DELETE FROM events WHERE stream = $1 AND seq = 3", number)


async def swap(scene: Scene) -> None:
    """Two events change places, and all is chained anew."""
    await scene.end()
    number = await scene.number("job/1")
    rows = await scene.thief.rows(f"SELECT data FROM events WHERE stream = {number} ORDER BY seq")
    order = [bytes(row[0]) for row in rows]
    order[1:3] = [order[2], order[1] + b" "]
    await scene.rewrite("job/1", lambda seq, _kind, _data: order[seq - 1])


async def insert(scene: Scene) -> None:
    """An event is put before the last one, and all is chained anew."""
    await scene.end()
    await scene.rewrite("job/2", lambda seq, _kind, data: data + b" " * (seq > 3))


async def replay_other_stream(scene: Scene) -> None:
    """The events of another job stand in the place of those of this one."""
    await scene.end()
    number = await scene.number("job/2")
    rows = await scene.thief.rows(f"SELECT data FROM events WHERE stream = {number} ORDER BY seq")
    await scene.rewrite("job/1", lambda seq, _kind, _data: bytes(rows[seq - 1][0]) + b" ")


async def tamper_signature(scene: Scene) -> None:
    """One letter of the last checkpoint's signature is another one."""
    await scene.end()

    def tamper(seq: int, _kind: str, data: bytes) -> bytes:
        said = json.loads(data)
        if seq == 4:
            line = said["signature"]
            said["signature"] = line[:-10] + ("A" if line[-10] != "A" else "B") + line[-9:]
        return json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()

    await scene.rewrite("recorder/1", tamper)


async def forge_size(scene: Scene) -> None:
    """The last checkpoint claims one leaf more."""
    await scene.end()

    def claim(_seq: int, kind: str, data: bytes) -> bytes:
        said = json.loads(data)
        said["size"] += kind == "recorder_checkpoint"
        return json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()

    await scene.rewrite("recorder/1", claim)


async def sign_all_anew(scene: Scene) -> None:
    """Everything is made anew, and signed by another key."""
    await scene.end()
    await scene.rewrite("job/1", other)
    await scene.sign_anew(66)


async def believe_nobody(scene: Scene) -> None:
    """The same, before a reader who has no key, and the second place."""
    await sign_all_anew(scene)
    scene.keys = []


async def reanchor(scene: Scene) -> None:
    """The tail is cut, and the rest cosigned by a witness of one's own."""
    await put_back(scene)
    own = signer(scene.world.origin, 66)
    last = notes_in(scene.world.notes.read_text())[0].checkpoint
    scene.notes = last.signed([own.line(last)]) + scene.world.elsewhere
