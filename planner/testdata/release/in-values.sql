SELECT count(*) FROM patients WHERE sex IN (VALUES ('male'), ('other'))
