SELECT city FROM zip_city WHERE zip IN (SELECT zip FROM patients WHERE age > 80)
