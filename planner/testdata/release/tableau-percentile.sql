SELECT PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY ("patients"."cost")::double precision ASC) AS "pct75", "patients"."sex" AS "sex" FROM "public"."patients" "patients" GROUP BY 2
