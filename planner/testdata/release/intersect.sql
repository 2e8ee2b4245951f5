SELECT zip FROM patients INTERSECT SELECT zip FROM zip_city
