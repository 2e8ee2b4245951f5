SELECT sex, avg(age), count(*) FROM patients WHERE age >= 30 GROUP BY sex
