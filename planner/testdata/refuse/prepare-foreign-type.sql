PREPARE x (pg_temp.dom) AS SELECT age FROM patients WHERE sex = $1
