"""Prints what clients read: a line for each row, the probe's name first."""
import datetime
import decimal

NAMES = ["age", "height", "weight", "born", "member", "sex", "zip", "visits", "cost", "score",
         "admitted", "consents", "diagnosis"]


def field(value):
    """A value of Python's own type, as PostgreSQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    if isinstance(value, (int, float, decimal.Decimal, str)):
        return str(value)
    return f"{type(value).__name__} {value!r}"


def show(probe, rows):
    for row in rows:
        print(probe, *(field(value) for value in row), sep="\t")
