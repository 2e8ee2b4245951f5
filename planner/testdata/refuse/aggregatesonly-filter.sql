SELECT count(*) FILTER (WHERE pay > 1000) FROM staff;
