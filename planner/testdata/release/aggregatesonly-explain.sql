EXPLAIN SELECT avg(pay) FROM staff WHERE age = 40;
