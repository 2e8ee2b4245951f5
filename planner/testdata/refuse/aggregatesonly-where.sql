SELECT count(*) FROM staff WHERE pay > 1000;
