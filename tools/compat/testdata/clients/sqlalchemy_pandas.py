"""pandas with SQLAlchemy: reflection, read_sql_table, and its expression language and ORM."""
import pandas
import sqlalchemy
from sqlalchemy import func
from sqlalchemy.orm import Session, registry

from show import show

print("version", f"{pandas.__version__}, {sqlalchemy.__version__}", sep="\t")
TYPES = {"BIGINT": "bigint", "INTEGER": "integer", "SMALLINT": "smallint", "TEXT": "text", "DATE": "date",
         "BOOLEAN": "boolean", "TIMESTAMP": "timestamp", "NUMERIC": "numeric", "DOUBLE_PRECISION": "double precision"}
engine = sqlalchemy.create_engine("postgresql+psycopg2://")
metadata = sqlalchemy.MetaData()
people = sqlalchemy.Table("people", metadata, autoload_with=engine)
postcodes = sqlalchemy.Table("postcodes", metadata, autoload_with=engine)
show("types", ((c.name, TYPES.get(type(c.type).__name__, repr(c.type))) for c in people.columns))

# Columns with NULL come as floats and objects: those of whole numbers are made whole.
frame = pandas.read_sql_table("people", engine, parse_dates=[])
for column in ["age", "height", "visits"]:
    if not pandas.api.types.is_numeric_dtype(frame[column]):
        raise AssertionError(f"{column} is {frame[column].dtype}")
    frame[column] = frame[column].astype("Int64")
for column in ["born", "admitted"]:
    if not pandas.api.types.is_datetime64_any_dtype(frame[column]):
        raise AssertionError(f"{column} is {frame[column].dtype}")


def plain(value, column):
    if pandas.isna(value):
        return None
    if column == "born":
        return value.date()
    if column == "admitted":
        return value.to_pydatetime()
    return value.item() if hasattr(value, "item") else value


show("rows", ([plain(value, column) for column, value in row.items()] for _, row in frame.astype(object).iterrows()))


class Person:
    pass


# A release has no key: the ORM needs one, and this one tells all rows apart.
registry().map_imperatively(Person, people, primary_key=[people.c.admitted])
with Session(engine) as session:
    query = session.query(Person).filter(Person.age >= 65, Person.sex == "female")
    show("filter", ((person.age, person.zip) for person in query))
    show("groups", session.query(Person.sex, func.count(), func.sum(Person.age), func.min(Person.born), func.max(Person.cost))
         .group_by(Person.sex))
    show("join", session.query(postcodes.c.city, func.count()).select_from(people)
         .outerjoin(postcodes, people.c.zip == postcodes.c.zip).group_by(postcodes.c.city))
