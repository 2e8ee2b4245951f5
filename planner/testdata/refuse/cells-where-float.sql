SELECT count(*) FROM staff WHERE pay > 3::float8
