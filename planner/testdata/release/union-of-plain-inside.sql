SELECT u.zip FROM (SELECT zip FROM patients UNION SELECT zip FROM zip_city) u
