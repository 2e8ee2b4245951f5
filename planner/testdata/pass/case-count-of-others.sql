SELECT case_count(1) FROM zip_city
