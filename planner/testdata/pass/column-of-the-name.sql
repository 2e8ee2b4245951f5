SELECT 1 AS patients, city FROM zip_city
