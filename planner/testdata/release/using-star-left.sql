SELECT * FROM zip_city LEFT JOIN patients USING (zip)
