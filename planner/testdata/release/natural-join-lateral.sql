SELECT p.zip, l.n FROM (SELECT zip, sex FROM patients) p NATURAL JOIN LATERAL (SELECT p.sex, count(*) AS n FROM zip_city z WHERE z.zip = p.zip) l
