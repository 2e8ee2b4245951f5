WITH e AS (SELECT zip FROM patients EXCEPT ALL (SELECT zip FROM patients WHERE sex = 'male' ORDER BY zip OFFSET 3)) SELECT zip, count(*) FROM e GROUP BY zip
