SELECT age FROM patients WHERE sex = ANY (ARRAY['male', 'female'])
