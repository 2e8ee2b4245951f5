SELECT CASE WHEN age > 50 THEN 'old' ELSE sex END, zip FROM patients
