"""LibreOffice's driver for PostgreSQL (SDBC), in a process of LibreOffice without a display."""
import os
import subprocess
import tempfile
import time

import uno
from com.sun.star.beans import PropertyValue
from com.sun.star.connection import NoConnectException

from show import NAMES, show

TYPES = {"int4": "integer", "int2": "smallint", "int8": "bigint", "bool": "boolean", "float8": "double precision"}


def office(folder):
    """Starts LibreOffice, and returns it with its service manager."""
    pipe = f"tailor{os.getpid()}"
    process = subprocess.Popen(["soffice", "--headless", "--norestore", "--nologo", f"-env:UserInstallation=file://{folder}",
                                f"--accept=pipe,name={pipe};urp;"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    resolver = uno.getComponentContext().ServiceManager.createInstance("com.sun.star.bridge.UnoUrlResolver")
    for _ in range(120):
        try:
            context = resolver.resolve(f"uno:pipe,name={pipe};urp;StarOffice.ComponentContext")
            return process, context, context.ServiceManager
        except NoConnectException:
            time.sleep(0.5)
    process.terminate()
    raise RuntimeError("LibreOffice does not answer")


def rows(connection, sql, kinds, *parameters):
    """Reads rows by the getters of the columns' types."""
    statement = connection.prepareStatement(sql)
    for place, value in enumerate(parameters, 1):
        if isinstance(value, int):
            statement.setInt(place, value)
        else:
            statement.setString(place, value)
    result = statement.executeQuery()
    while result.next():
        row = []
        for place, kind in enumerate(kinds, 1):
            value = getattr(result, "get" + kind)(place)
            if result.wasNull():
                value = None
            elif kind == "Date":
                value = f"{value.Year:04}-{value.Month:02}-{value.Day:02}"
            elif kind == "Timestamp":
                value = f"{value.Year:04}-{value.Month:02}-{value.Day:02} {value.Hours:02}:{value.Minutes:02}:{value.Seconds:02}"
            row.append(value)
        yield row


def main(manager, context):
    driver = manager.createInstanceWithContext("org.openoffice.comp.connectivity.pq.Driver.noext", context)
    settings = [PropertyValue("user", 0, os.environ["PGUSER"], 0), PropertyValue("password", 0, os.environ["PGPASSWORD"], 0)]
    connection = driver.connect(
        f"sdbc:postgresql:host={os.environ['PGHOST']} port={os.environ['PGPORT']} dbname={os.environ['PGDATABASE']}", tuple(settings))
    columns = connection.getMetaData().getColumns(None, "research", "people", "%")
    while columns.next():
        name = columns.getString(6)
        show("types", [[columns.getString(4), TYPES.get(name, name)]])
    show("rows", rows(connection, f"SELECT {', '.join(NAMES)} FROM people", [
        "Int", "Short", "Double", "Date", "Boolean", "String", "String", "Long", "Double", "Double", "Timestamp", "Boolean", "String"]))
    show("filter", rows(connection, "SELECT age, zip FROM people WHERE age >= ? AND sex = ?", ["Int", "String"], 65, "female"))
    show("groups", rows(connection, "SELECT sex, count(*), sum(age), min(born), max(cost) FROM people GROUP BY sex",
                        ["String", "Int", "Long", "Date", "Double"]))
    show("join", rows(connection, "SELECT city, count(*) FROM people LEFT JOIN postcodes USING (zip) GROUP BY city", ["String", "Int"]))
    connection.close()


print("version", subprocess.check_output(["soffice", "--version"], text=True).split()[1], sep="\t")
with tempfile.TemporaryDirectory() as folder:
    process, context, manager = office(folder)
    try:
        main(manager, context)
    finally:
        try:
            manager.createInstanceWithContext("com.sun.star.frame.Desktop", context).terminate()
        except Exception:  # it ends before it answers
            pass
        process.wait(30)
