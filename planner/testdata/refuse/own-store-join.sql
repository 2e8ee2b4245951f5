SELECT age FROM patients p, tailor_store.tuples_1 t
