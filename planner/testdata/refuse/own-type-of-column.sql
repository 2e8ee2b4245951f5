SELECT r.a, count(*) FROM patients p, json_to_recordset('[]') AS r (a pg_temp.peeking) GROUP BY 1
