"""postgres_fdw: another database imports the schema research through tailor."""
import os

import psycopg

from show import NAMES, show

direct = {"host": os.environ["PGHOST"], "port": os.environ["TAILOR_COMPAT_DIRECT"], "user": "postgres", "password": "postgres"}
with psycopg.connect(dbname="postgres", autocommit=True, **direct) as connection:
    connection.execute("DROP DATABASE IF EXISTS clients_fdw (FORCE)")
    connection.execute("CREATE DATABASE clients_fdw")
with psycopg.connect(dbname="clients_fdw", autocommit=True, **direct) as connection:
    print("version", connection.execute("SHOW server_version").fetchone()[0], sep="\t")
    for statement in [
        "CREATE EXTENSION postgres_fdw",
        f"CREATE SERVER tailor FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '{os.environ['PGPORT']}', dbname 'clients')",
        "CREATE USER MAPPING FOR postgres SERVER tailor OPTIONS (user 'researcher', password 'researcher')",
        "IMPORT FOREIGN SCHEMA research FROM SERVER tailor INTO public",
        "IMPORT FOREIGN SCHEMA public LIMIT TO (postcodes) FROM SERVER tailor INTO public",
    ]:
        connection.execute(statement)
    show("types", ((name, of.split("(")[0].removesuffix(" without time zone")) for name, of in connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = 'people'::regclass AND attnum > 0")))
    show("rows", connection.execute(f"SELECT {', '.join(NAMES)} FROM people"))
    show("filter", connection.execute("SELECT age, zip FROM people WHERE age >= 65 AND sex = 'female'"))
    show("groups", connection.execute("SELECT sex, count(*), sum(age), min(born), max(cost) FROM people GROUP BY sex"))
    show("join", connection.execute("SELECT city, count(*) FROM people LEFT JOIN postcodes USING (zip) GROUP BY city"))
