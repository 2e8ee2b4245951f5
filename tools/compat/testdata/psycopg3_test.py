"""What programs do with psycopg 3: a line for each, 'pass' or 'fail' and a name."""
import asyncio

import psycopg


def parameters(c):
    assert c.execute("SELECT %s::int + 1, %s::text", (41, "ä")).fetchone() == (42, "ä")


def binary(c):
    assert c.execute("SELECT %b::int8, 'x'::bytea", (7,), binary=True).fetchone() == (7, b"x")


def prepared(c):
    for n in range(20):
        assert c.execute("SELECT %s::int * 2", (n,), prepare=True).fetchone() == (2 * n,)


def pipeline(c):
    with c.pipeline():
        answers = [c.execute("SELECT %s::int", (n,)) for n in range(50)]
    assert [a.fetchone()[0] for a in answers] == list(range(50))


def pipeline_error(c):
    c.commit()
    try:
        with c.pipeline():
            c.execute("SELECT 1")
            c.execute("SELECT 1 / 0")
            c.execute("SELECT 2")
        raise AssertionError("no error")
    except psycopg.errors.DivisionByZero:
        c.rollback()
    assert c.execute("SELECT 3").fetchone() == (3,)


def executemany(c):
    c.execute("CREATE TEMP TABLE m (n int)")
    c.cursor().executemany("INSERT INTO m VALUES (%s)", [(n,) for n in range(500)])
    assert c.execute("SELECT count(*) FROM m").fetchone() == (500,)


def copy(c):
    c.execute("CREATE TEMP TABLE k (n int, w text)")
    with c.cursor().copy("COPY k FROM STDIN") as writer:
        for n in range(3000):
            writer.write_row((n, "w"))
    with c.cursor().copy("COPY k TO STDOUT (FORMAT binary)") as reader:
        assert sum(len(data) for data in reader) > 3000 * 10


def server_cursor(c):
    with c.cursor("s") as s:
        s.execute("SELECT n FROM generate_series(1, 1000) n")
        assert len(s.fetchmany(10)) == 10
        s.scroll(100)
        assert s.fetchone() == (111,)


def stream(c):
    assert sum(1 for _ in c.cursor().stream("SELECT generate_series(1, 2000)")) == 2000


def asynchronous(_):
    async def run():
        async with await psycopg.AsyncConnection.connect("") as c:
            return await (await c.execute("SELECT 5")).fetchone()
    assert asyncio.run(run()) == (5,)


def cancel(c):
    import threading
    timer = threading.Timer(0.3, c.cancel)
    timer.start()
    try:
        c.execute("SELECT pg_sleep(20)")
        raise AssertionError("not cancelled")
    except psycopg.errors.QueryCanceled:
        pass


for test in [parameters, binary, prepared, pipeline, pipeline_error, executemany, copy, server_cursor, stream,
             asynchronous, cancel]:
    try:
        with psycopg.connect("") as connection:
            test(connection)
        print("pass", test.__name__)
    except Exception as fault:
        print("fail", test.__name__)
        print("#", repr(fault))
