SELECT "LHS".* FROM "zip_city" AS "LHS"
WHERE NOT EXISTS (
  SELECT 1 FROM (SELECT "zip" FROM "patients" WHERE ("age" > 90.0)) AS "RHS"
  WHERE ("LHS"."zip" = "RHS"."zip")
)
