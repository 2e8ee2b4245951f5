select oid, typbasetype from pg_type where typname = 'lo' and 'patients' <> ''
