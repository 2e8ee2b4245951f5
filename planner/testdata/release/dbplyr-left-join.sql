SELECT "LHS"."age" AS "age", "LHS"."sex" AS "sex", "LHS"."zip" AS "zip", "city"
FROM (SELECT "age", "sex", "zip" FROM "patients") AS "LHS"
LEFT JOIN "zip_city" AS "RHS"
  ON ("LHS"."zip" = "RHS"."zip")
