SELECT p.zip, sum(e.fee) FROM patients p JOIN encounters e ON p.id = e.patient_id GROUP BY 1 HAVING sum(e.fee) > 30 ORDER BY 1
