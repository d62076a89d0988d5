"""A transaction: everything between its begin and its end happens, or nothing."""

from __future__ import annotations

import apsw


class Transaction:
    """Transactions that may write, one at a time; rolled back on any error."""

    __slots__ = ("_db",)

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        if kind is None:
            try:
                self._db.execute("COMMIT")
            except BaseException:
                self.roll_back()
                raise
        else:
            self.roll_back()

    def roll_back(self) -> None:
        """End it without a trace, where there is one: an interrupt may come between its begin and its block."""
        # SQLite ends a transaction by itself after some errors, such as a full disk.
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
