SELECT "decade", COUNT(*) AS "n"
FROM (
  SELECT "patients".*, FLOOR("age" / 10.0) AS "decade"
  FROM "patients"
) AS "q01"
GROUP BY "decade"
ORDER BY "n" DESC, "decade"
