DO $$ BEGIN NULL; END $$; SELECT age FROM patients
