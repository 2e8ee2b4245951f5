SELECT zip, sex, count(*) FROM patients GROUP BY CUBE (zip, sex) ORDER BY 1 NULLS LAST
