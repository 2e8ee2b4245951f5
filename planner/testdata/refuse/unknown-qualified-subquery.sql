SELECT q.nothing FROM (SELECT age FROM patients) q
