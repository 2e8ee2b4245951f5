SELECT 'ä', age FROM patients WHERE "sex = 1
