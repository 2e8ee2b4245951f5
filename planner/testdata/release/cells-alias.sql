SELECT unit AS place, sex AS gender, count(*) AS "how many" FROM research.staff GROUP BY place, gender
