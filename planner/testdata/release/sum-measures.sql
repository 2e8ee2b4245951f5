SELECT sum(cost), avg(cost), stddev(cost), corr(age, cost), regr_slope(cost, age) FROM patients
