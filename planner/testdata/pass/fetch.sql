FETCH 100 FROM patients_cursor
