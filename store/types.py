"""Column types of the tables that SQLAlchemy has not, or not alike for both databases."""

from typing import Any

from sqlalchemy import BigInteger, Text
from sqlalchemy.types import TypeEngine, UserDefinedType


class Xid8(UserDefinedType[int]):
    """PostgreSQL's 64-bit transaction id."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        """Return the type's name in DDL."""
        return "xid8"


def identifier() -> TypeEngine[str]:
    """Return the type of columns that are keys or are sorted by: text in code point order on both databases."""
    return Text().with_variant(Text(collation="C"), "postgresql")


def transaction() -> TypeEngine[int]:
    """Return the type of a transaction's id: xid8 on PostgreSQL, an integer on SQLite."""
    return BigInteger().with_variant(Xid8(), "postgresql")
