SELECT z.city, (SELECT count(*) AS count_1 FROM patients WHERE patients.zip = z.zip) AS n FROM zip_city AS z
