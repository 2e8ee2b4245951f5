-- Data sets --------------------------------------------------------------------
--
-- A query over tables, kept as a materialized view and protected as a table is: it is
-- filled anew by PostgreSQL, with its owner's rights, whenever a copy of it is made.
-- What it may show beside the tables it was made from is decided as between any two
-- tables of the same people (facts.sql).

-- With the caller's rights and search path: the query is the caller's.
CREATE OR REPLACE PROCEDURE tailor.define_dataset(name text, query text, subject name, k integer DEFAULT 5)
LANGUAGE plpgsql AS $$
DECLARE
    relation pg_catalog.regclass;
BEGIN
    EXECUTE pg_catalog.format('CREATE MATERIALIZED VIEW %s AS %s', name, query);
    relation := name::pg_catalog.regclass;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = relation AND a.attname = subject AND a.attnum > 0) THEN
        RAISE EXCEPTION 'the query of data set % has no column "%"', relation, subject USING ERRCODE = '42703',
            HINT = 'Select the column that says whom a row is about.';
    END IF;
    BEGIN
        EXECUTE pg_catalog.format('CREATE UNIQUE INDEX ON %s (%I)', relation, subject);
    EXCEPTION WHEN unique_violation THEN
        RAISE NOTICE 'data set %: subjects have several rows', relation;
    END;
    CALL tailor.protect(relation, subject, k);
END $$;
COMMENT ON PROCEDURE tailor.define_dataset IS 'makes a materialized view of a query, to be protected as a table is: call tailor.classify for its columns, and tailor.activate';

CREATE OR REPLACE FUNCTION tailor.read_by_data_sets() RETURNS TABLE (dataset regclass, relation regclass, column_name name)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE reads (dataset, relation, number) AS (
        SELECT p.relation::oid, d.refobjid, d.refobjsubid
        FROM tailor.protection p JOIN pg_rewrite w ON w.ev_class = p.relation
        JOIN pg_depend d ON (d.classid, d.objid, d.refclassid) = ('pg_rewrite'::regclass, w.oid, 'pg_class'::regclass) AND d.refobjid <> w.ev_class
      UNION
        SELECT r.dataset, d.refobjid, d.refobjsubid
        FROM reads r JOIN pg_rewrite w ON w.ev_class = r.relation
        JOIN pg_depend d ON (d.classid, d.objid, d.refclassid) = ('pg_rewrite'::regclass, w.oid, 'pg_class'::regclass) AND d.refobjid <> w.ev_class)
    SELECT r.dataset::regclass, r.relation::regclass, a.attname
    FROM reads r JOIN pg_attribute a ON a.attrelid = r.relation AND a.attnum = r.number
$$;
COMMENT ON FUNCTION tailor.read_by_data_sets IS 'the columns that the queries of protected materialized views read, by way of views too';
