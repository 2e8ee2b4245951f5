"""psycopg 3: text and binary answers, parameters, server-side cursors."""
import psycopg

from show import NAMES, show

print("version", psycopg.__version__, sep="\t")
TYPES = {"int4": "integer", "int2": "smallint", "int8": "bigint", "bool": "boolean", "float8": "double precision"}
with psycopg.connect("") as connection:
    every = connection.execute(f"SELECT {', '.join(NAMES)} FROM people")
    types = (psycopg.adapters.types[column.type_code].name for column in every.description)
    show("types", zip(NAMES, (TYPES.get(name, name) for name in types)))
    rows = every.fetchall()
    with connection.cursor("c", binary=True) as cursor:
        binary = cursor.execute("SELECT * FROM people").fetchall()
    if sorted(map(str, rows)) != sorted(map(str, binary)):
        raise AssertionError("a binary cursor reads something else than a text one")
    show("rows", rows)
    show("filter", connection.execute("SELECT age, zip FROM people WHERE age >= %s AND sex = %s", (65, "female"), binary=True))
    show("groups", connection.execute("SELECT sex, count(*), sum(age), min(born), max(cost) FROM people GROUP BY sex", prepare=True))
    show("join", connection.execute("SELECT city, count(*) FROM people LEFT JOIN postcodes USING (zip) GROUP BY city"))
