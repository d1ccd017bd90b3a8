"""Running statements on a connection."""

from typing import Any

import apsw


class Statements:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, *values: Any) -> apsw.Cursor:
        return self._connection.execute(statement, values)

    def execute_named(self, statement: str, values: dict[str, Any]) -> apsw.Cursor:
        return self._connection.execute(statement, values)

    def first(self, statement: str, *values: Any) -> Any:
        """The first row, or None. The statement is finished afterwards."""
        cursor = self._connection.execute(statement, values)
        row = cursor.fetchone()
        cursor.close()
        return row

    def close(self) -> None:
        self._connection.close()
