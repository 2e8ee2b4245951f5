SELECT sum(pay::smallint) FROM staff
