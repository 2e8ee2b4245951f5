SELECT "patients"."name" FROM "public"."patients"
