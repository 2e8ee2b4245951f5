SELECT sex, count(*) FROM patients GROUP BY sex, age, zip
