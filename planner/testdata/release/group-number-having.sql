SELECT zip, sex, count(*) FROM patients GROUP BY zip, sex HAVING zip > '1'
