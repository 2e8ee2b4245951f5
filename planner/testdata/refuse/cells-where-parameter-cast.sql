SELECT count(*) FROM staff WHERE hired > $1::date
