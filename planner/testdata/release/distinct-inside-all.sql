SELECT d.zip FROM (SELECT DISTINCT ON (sex) zip, sex FROM patients ORDER BY sex, zip) d
