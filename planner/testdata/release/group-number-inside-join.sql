SELECT x.sex, x.n FROM (SELECT p.sex, count(*) AS n FROM zip_city c LEFT JOIN patients p ON p.zip = c.zip GROUP BY p.sex) x
