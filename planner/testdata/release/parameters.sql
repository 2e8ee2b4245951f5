SELECT age FROM patients WHERE age BETWEEN $1 AND $2 AND sex = $3 LIMIT $4
