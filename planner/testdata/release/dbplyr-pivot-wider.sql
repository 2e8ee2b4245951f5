SELECT "diagnosis", MAX(CASE WHEN ("sex" = 'male') THEN "n" END) AS "male", MAX(CASE WHEN ("sex" = 'female') THEN "n" END) AS "female"
FROM (SELECT "diagnosis", "sex", COUNT(*) AS "n" FROM "patients" GROUP BY "diagnosis", "sex") AS "q01"
GROUP BY "diagnosis"
