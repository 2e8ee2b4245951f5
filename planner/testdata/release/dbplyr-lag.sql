SELECT "y", "n", LAG("n", 1, NULL) OVER (ORDER BY "y") AS "before" FROM (SELECT EXTRACT(year FROM "birth_date") AS "y", COUNT(*) AS "n" FROM "patients" GROUP BY 1) "q01"
