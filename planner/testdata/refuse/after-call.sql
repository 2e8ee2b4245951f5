CALL f(); SELECT age FROM patients
