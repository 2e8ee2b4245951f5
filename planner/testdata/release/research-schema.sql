SELECT age FROM research.patients
