SELECT count(*) FROM patients GROUP BY ssn
