SELECT age FROM other.patients
