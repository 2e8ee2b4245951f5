SELECT q.* FROM (SELECT sex, count(*) FROM patients, unknown_table GROUP BY sex) q
