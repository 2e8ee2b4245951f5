SELECT age INTO TEMPORARY mine FROM patients UNION SELECT age FROM patients
