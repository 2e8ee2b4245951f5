SELECT * FROM (SELECT ctid AS c FROM patients) x
