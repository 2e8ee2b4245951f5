-- Logins -------------------------------------------------------------------------
--
-- The proxy checks passwords against PostgreSQL's own verifiers. Where nobody is superuser,
-- those cannot be read: there a password is set with tailor.let_in, which gives the server
-- and the proxy the same verifier.

CREATE TABLE IF NOT EXISTS tailor.login (
    role     oid PRIMARY KEY,
    name     name NOT NULL,
    verifier text NOT NULL
);
COMMENT ON TABLE tailor.login IS 'SCRAM verifiers of roles, where the server''s own cannot be read';
COMMENT ON COLUMN tailor.login.name IS
    'of the role then: in a dump numbers mean other roles, and later names may';

CREATE OR REPLACE FUNCTION tailor.verifier(principal name) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN -- in PL/pgSQL the plan is kept: each login asks
    IF has_table_privilege('pg_catalog.pg_authid', 'SELECT') THEN
        RETURN (SELECT rolpassword FROM pg_authid
                WHERE rolname = principal AND rolcanlogin
                  AND (rolvaliduntil IS NULL OR rolvaliduntil > now()));
    END IF;
    RETURN (SELECT l.verifier FROM tailor.login l
            JOIN pg_roles r ON (r.oid, r.rolname) = (l.role, l.name)
            WHERE r.rolname = principal AND r.rolcanlogin
              AND (r.rolvaliduntil IS NULL OR r.rolvaliduntil > now()));
END
$$;
COMMENT ON FUNCTION tailor.verifier IS
    'SCRAM verifier of a role that may log in; for the proxy only';

-- With the caller's rights: whoever may not set the role's password fails at ALTER ROLE, and
-- whoever is no member of tailor_owner at the table. A verifier that the server does not have
-- would let nobody in but by a connection that somebody else has left.
CREATE OR REPLACE PROCEDURE tailor.let_in(principal name, verifier text)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF verifier IS NULL OR verifier !~ concat('^SCRAM-SHA-256\$[0-9]+:[A-Za-z0-9+/=]+',
                                              '\$[A-Za-z0-9+/=]{44}:[A-Za-z0-9+/=]{44}$') THEN
        RAISE EXCEPTION 'this is no verifier of SCRAM-SHA-256' USING ERRCODE = '22023',
            HINT = 'tailor password computes it and calls this procedure.';
    END IF;
    EXECUTE format('ALTER ROLE %I PASSWORD %L', principal, verifier);
    INSERT INTO tailor.login AS l (role, name, verifier)
        SELECT r.oid, r.rolname, let_in.verifier FROM pg_roles r WHERE r.rolname = let_in.principal
        ON CONFLICT (role) DO UPDATE SET name = excluded.name, verifier = excluded.verifier;
END $$;
COMMENT ON PROCEDURE tailor.let_in IS 'sets the password of a role by its verifier, for the server '
    'and for proxies that cannot read the server''s';
