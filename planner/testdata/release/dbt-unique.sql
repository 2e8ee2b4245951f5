WITH grouped AS (
	SELECT zip AS unique_field, count(*) AS n_records FROM "hospital"."public"."patients" WHERE zip IS NOT NULL GROUP BY zip HAVING count(*) > 1
)
SELECT unique_field, n_records FROM grouped
