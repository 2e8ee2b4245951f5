"""What programs do with psycopg2: a line for each, 'pass' or 'fail' and a name."""
import datetime
import io

import psycopg2
import psycopg2.extras


def simple(c):
    c.execute("SELECT 1, 'two', NULL, %s::date", (datetime.date(2024, 2, 29),))
    assert c.fetchone() == (1, "two", None, datetime.date(2024, 2, 29))


def named_cursor(c):
    with c.connection.cursor("many") as many:
        many.itersize = 100
        many.execute("SELECT n FROM generate_series(1, 1050) n")
        assert sum(row[0] for row in many) == 1050 * 1051 // 2


def copy_in_and_out(c):
    c.execute("CREATE TEMP TABLE t (n int, word text)")
    c.copy_from(io.StringIO("".join(f"{n}\tw{n}\n" for n in range(5000))), "t")
    out = io.StringIO()
    c.copy_to(out, "t")
    assert len(out.getvalue().splitlines()) == 5000


def errors_and_savepoints(c):
    c.execute("SAVEPOINT a")
    try:
        c.execute("SELECT 1 / 0")
        raise AssertionError("no error")
    except psycopg2.errors.DivisionByZero:
        c.execute("ROLLBACK TO a")
    c.execute("SELECT 1")


def values_in_bulk(c):
    c.execute("CREATE TEMP TABLE b (n int, j jsonb)")
    psycopg2.extras.execute_values(c, "INSERT INTO b VALUES %s", [(n, "{}") for n in range(1000)])
    c.execute("SELECT count(*) FROM b")
    assert c.fetchone() == (1000,)


def several_statements(c):
    c.execute("SELECT 1; SELECT 2; SELECT 3")
    assert c.fetchone() == (3,)


def large_values(c):
    c.execute("SELECT repeat('x', 30000000)")
    assert len(c.fetchone()[0]) == 30000000


def settings(c):
    c.execute("SET application_name = 'other'; SHOW application_name")
    assert c.fetchone() == ("other",)
    assert c.connection.get_parameter_status("application_name") == "other"


for test in [simple, named_cursor, copy_in_and_out, errors_and_savepoints, values_in_bulk,
             several_statements, large_values, settings]:
    try:
        with psycopg2.connect("") as connection, connection.cursor() as cursor:
            test(cursor)
        print("pass", test.__name__)
    except Exception as fault:
        print("fail", test.__name__)
        print("#", repr(fault))
