SELECT array_position(ARRAY['male', 'female'], sex), cardinality(ARRAY[age]) FROM patients
