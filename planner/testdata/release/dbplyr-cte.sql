WITH "q01" AS (
  SELECT "patients".*
  FROM "patients"
  WHERE ("age" >= 18.0)
),
"q02" AS (
  SELECT "sex", AVG("cost") AS "m"
  FROM "q01"
  GROUP BY "sex"
)
SELECT "q01"."age" AS "age", "q01"."sex" AS "sex", "cost" - "m" AS "above"
FROM "q01"
LEFT JOIN "q02"
  ON ("q01"."sex" = "q02"."sex")
