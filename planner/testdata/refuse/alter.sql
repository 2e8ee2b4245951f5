ALTER TABLE patients ADD x int
