SELECT count(*) FROM patients; FETCH ALL FROM c
