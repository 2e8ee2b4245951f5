SELECT json_build_object('age', age, 'sex', sex) FROM patients
