SELECT age FROM patients WHERE pg_input_is_valid('x', 'pg_temp.dom')
