SELECT zip, avg(cost) FROM patients GROUP BY zip HAVING avg(age) > 40 AND count(*) >= 10
