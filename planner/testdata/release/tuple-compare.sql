SELECT count(*) FROM patients WHERE (age, zip) > (50, '10000') AND ROW(sex, age) IS DISTINCT FROM ROW('male', 3)
