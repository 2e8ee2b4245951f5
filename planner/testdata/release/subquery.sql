SELECT q.age, q.n FROM (SELECT age, count(*) n FROM patients GROUP BY age) q ORDER BY q.age
