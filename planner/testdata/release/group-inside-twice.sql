SELECT b.age FROM (SELECT a.age FROM (SELECT age, sex FROM patients GROUP BY age, sex) a GROUP BY a.age) b
