SELECT city FROM zip_city z WHERE NOT EXISTS (SELECT 1 FROM patients WHERE patients.zip = z.zip)
