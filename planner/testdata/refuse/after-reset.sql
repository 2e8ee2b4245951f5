RESET search_path; SELECT age FROM patients
