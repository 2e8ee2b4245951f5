SELECT patients.city FROM zip_city AS patients
