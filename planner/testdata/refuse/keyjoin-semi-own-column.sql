SELECT s.ward FROM stays s WHERE EXISTS (SELECT FROM patients p WHERE p.id = id)
