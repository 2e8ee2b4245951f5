SELECT age AS n, p.sex AS n, zip AS z, zip AS z, count(*) FROM patients p GROUP BY n, p.sex, z
