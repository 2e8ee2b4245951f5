SELECT sex, avg(pay) OVER (PARTITION BY sex) FROM staff;
