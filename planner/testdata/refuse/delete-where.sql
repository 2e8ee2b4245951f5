DELETE FROM names WHERE n IN (SELECT age FROM patients)
