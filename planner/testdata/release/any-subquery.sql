SELECT city FROM zip_city WHERE zip = ANY (SELECT zip FROM patients)
