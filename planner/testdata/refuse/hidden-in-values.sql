SELECT * FROM patients p, LATERAL (VALUES (p.ssn)) v
