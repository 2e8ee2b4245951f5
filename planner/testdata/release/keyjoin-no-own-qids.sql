SELECT p.age, s.ward, p.zip FROM patients p, stays s WHERE p.id = s.id
