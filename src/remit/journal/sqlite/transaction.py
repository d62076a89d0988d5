"""A transaction: everything between its begin and its end happens, or nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import apsw


@contextlib.contextmanager
def transaction(db: apsw.Connection) -> Iterator[None]:
    """One transaction that may write; rolled back on any error."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        # SQLite ends a transaction by itself after some errors, such as a full disk.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
