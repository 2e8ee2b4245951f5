SELECT "age", "sex", "cost"
FROM (
  SELECT "age", "sex", "cost", ROW_NUMBER() OVER (PARTITION BY "sex" ORDER BY "cost" DESC, "age") AS "q01"
  FROM "patients"
) AS "q01"
WHERE ("q01" <= 3)
