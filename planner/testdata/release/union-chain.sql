SELECT u.zip FROM (SELECT zip FROM patients UNION SELECT zip FROM patients WHERE age > 3 UNION SELECT zip FROM patients WHERE age < 3) u
