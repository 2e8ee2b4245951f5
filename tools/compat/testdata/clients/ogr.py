"""ogr2ogr: layers as CSV files, with the types that GDAL gives their columns."""
import csv
import os
import subprocess
import tempfile

from show import NAMES

print("version", subprocess.check_output(["ogr2ogr", "--version"], text=True).split(",")[0], sep="\t")
TYPES = {"Integer": "integer", "Integer(Int16)": "smallint", "Integer64": "bigint", "Real": "double precision", "Date": "date",
         "DateTime": "timestamp", "Integer(Boolean)": "boolean", "String": "text"}


def kind(name):
    """The type of a column: GDAL writes lengths behind its name, and numeric as Real with them."""
    plain, _, length = name.partition("(")
    if plain == "Real" and length:
        return "numeric"
    return TYPES.get(name if name in TYPES else plain, name)


def layer(*args):
    """Reads a layer: the types of its columns, and its rows as dictionaries."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TAILOR_COMPAT_DIR")) as folder:
        file = os.path.join(folder, "out.csv")
        subprocess.run(["ogr2ogr", "-f", "CSV", "-lco", "CREATE_CSVT=YES", "-nlt", "NONE", file, "PG:",
                        "--config", "PG_LIST_ALL_TABLES", "YES", *args], check=True)
        with open(os.path.join(folder, "out.csvt"), encoding="utf-8") as types, open(file, encoding="utf-8", newline="") as rows:
            return next(csv.reader(types)), list(csv.DictReader(rows))


def show(probe, rows, names):
    for row in rows:
        fields = []
        for name in names:
            value = row[name] or "NULL"
            if name in ("born", "admitted", "first"):
                value = value.replace("/", "-")
            if name in ("member", "consents") and value in ("0", "1"):
                value = "ft"[int(value)]
            fields.append(value)
        print(probe, *fields, sep="\t")


types, rows = layer("people")
for name, of in zip(NAMES, types):
    print("types", name, kind(of), sep="\t")
show("rows", rows, NAMES)
show("filter", layer("people", "-where", "age >= 65 AND sex = 'female'", "-select", "age,zip")[1], ["age", "zip"])
show("groups", layer("-sql", "SELECT sex, count(*) AS n, sum(age) AS years, min(born) AS first, max(cost) AS most FROM people GROUP BY sex")[1],
     ["sex", "n", "years", "first", "most"])
show("join", layer("-sql", "SELECT city, count(*) AS n FROM people LEFT JOIN postcodes USING (zip) GROUP BY city")[1], ["city", "n"])
