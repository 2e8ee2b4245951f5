SELECT tailor_number_5, count(*) FROM patients GROUP BY 1
