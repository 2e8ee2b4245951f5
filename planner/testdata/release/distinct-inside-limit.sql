SELECT d.zip, d.a FROM (SELECT DISTINCT zip, age AS a, sex FROM patients p WHERE diagnosis = 'flu' ORDER BY p.zip, age DESC, 3 LIMIT 7) d
