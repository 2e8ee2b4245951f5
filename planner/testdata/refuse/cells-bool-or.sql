SELECT count(*), bool_or(pay > 3) FROM staff
