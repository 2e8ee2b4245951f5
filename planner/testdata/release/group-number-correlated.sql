SELECT sex, zip, (SELECT count(*) FROM zip_city z WHERE z.city = patients.sex) FROM patients GROUP BY sex, zip
