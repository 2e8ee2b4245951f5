SELECT row_to_json(t.*), count(t.*) OVER () FROM (SELECT * FROM patients) t
