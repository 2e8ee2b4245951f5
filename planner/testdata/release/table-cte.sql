WITH q AS (SELECT age, zip FROM patients) TABLE q
