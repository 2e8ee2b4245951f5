SELECT age FROM staff ORDER BY pay;
