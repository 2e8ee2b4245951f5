SELECT age AS "select", sex "from" FROM patients ORDER BY "select"
