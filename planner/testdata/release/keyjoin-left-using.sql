SELECT s.ward, p.sex FROM stays s LEFT JOIN patients p USING (id)
