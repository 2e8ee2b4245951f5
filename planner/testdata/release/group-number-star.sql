SELECT p.*, count(*) FROM (SELECT sex, age FROM patients GROUP BY sex, age) p GROUP BY sex, age
