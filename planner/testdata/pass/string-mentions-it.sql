DO $$ BEGIN PERFORM * FROM patients; END $$
