SELECT count(*) FROM staff NATURAL JOIN (SELECT 3 AS pay) b;
