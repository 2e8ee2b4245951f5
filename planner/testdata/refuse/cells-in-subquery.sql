SELECT count(*) FROM staff WHERE unit IN (SELECT city FROM zip_city)
