SELECT q.who FROM (SELECT name AS who FROM patients) q
