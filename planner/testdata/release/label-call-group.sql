SELECT tailor.label(zip), count(*), avg(CASE WHEN tailor.exact(age) THEN 1 ELSE 0 END) FROM patients GROUP BY tailor.label(zip) ORDER BY tailor.label(zip)
