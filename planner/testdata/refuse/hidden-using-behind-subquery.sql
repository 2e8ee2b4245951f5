SELECT count(*) FROM patients JOIN (SELECT z.city AS sex, 'x' AS name FROM zip_city z JOIN cities USING (city)) AS n USING (sex, name)
