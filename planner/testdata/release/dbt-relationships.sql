WITH child AS (SELECT zip AS from_field FROM "hospital"."public"."patients" WHERE zip IS NOT NULL),
	parent AS (SELECT zip AS to_field FROM "hospital"."public"."zip_city")
SELECT from_field FROM child LEFT JOIN parent ON child.from_field = parent.to_field WHERE parent.to_field IS NULL
