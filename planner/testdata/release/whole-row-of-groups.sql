SELECT t.sex, row_to_json(t) FROM (SELECT sex, count(*) AS n FROM patients GROUP BY sex) t
