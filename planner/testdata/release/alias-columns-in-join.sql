SELECT p.z, p.y FROM patients p (b, y, s, z) JOIN zip_city c (z, k) USING (z)
