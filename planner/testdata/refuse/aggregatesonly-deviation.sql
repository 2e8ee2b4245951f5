SELECT stddev(pay) FROM staff;
