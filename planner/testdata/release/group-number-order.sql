SELECT p.age AS years, zip z, count(*) FROM patients p GROUP BY p.age, z ORDER BY p.age DESC NULLS LAST, zip
