PREPARE q AS SELECT $1, age, zip, count(*) FROM patients WHERE age < $2 AND zip LIKE $3 || '%' GROUP BY age, zip ORDER BY age
