"""psqlODBC through unixODBC and pyodbc; the argument is UseDeclareFetch."""
import glob
import os
import sys

import pyodbc

from show import NAMES, show

driver = glob.glob("/usr/lib/*/odbc/psqlodbcw.so")[0]
connection = pyodbc.connect(
    f"Driver={driver};Servername={os.environ['PGHOST']};Port={os.environ['PGPORT']};Database={os.environ['PGDATABASE']};"
    f"UID={os.environ['PGUSER']};PWD={os.environ['PGPASSWORD']};UseDeclareFetch={sys.argv[1]};Fetch=100;BoolsAsChar=0")
print("version", connection.getinfo(pyodbc.SQL_DRIVER_VER), sep="\t")
TYPES = {"int4": "integer", "int2": "smallint", "int8": "bigint", "bool": "boolean", "float8": "double precision"}
cursor = connection.cursor()
show("types", ((c.column_name, TYPES.get(c.type_name, c.type_name)) for c in cursor.columns(table="people", schema="research")))
show("rows", cursor.execute(f"SELECT {', '.join(NAMES)} FROM people"))
show("filter", cursor.execute("SELECT age, zip FROM people WHERE age >= ? AND sex = ?", 65, "female"))
show("groups", cursor.execute("SELECT sex, count(*), sum(age), min(born), max(cost) FROM people GROUP BY sex"))
show("join", cursor.execute("SELECT city, count(*) FROM people LEFT JOIN postcodes USING (zip) GROUP BY city"))
