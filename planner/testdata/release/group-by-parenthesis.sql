SELECT age, zip, count(*) FROM patients GROUP BY (age), zip
