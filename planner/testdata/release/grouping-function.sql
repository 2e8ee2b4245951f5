SELECT grouping(zip, sex), zip, count(*) FROM patients GROUP BY ROLLUP (zip, sex)
