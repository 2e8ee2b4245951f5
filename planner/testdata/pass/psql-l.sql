SELECT d.datname, pg_catalog.pg_encoding_to_char(d.encoding), pg_catalog.array_to_string(d.datacl, E'\n') FROM pg_catalog.pg_database d ORDER BY 1
