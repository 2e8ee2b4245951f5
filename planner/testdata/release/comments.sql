/* first */ SELECT age -- the age
FROM patients -- all
;
