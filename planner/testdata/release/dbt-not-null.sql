/* {"app": "a modelling tool", "node": "test"} */
SELECT count(*) AS failures, count(*) <> 0 AS should_warn, count(*) <> 0 AS should_error
FROM (SELECT age FROM "hospital"."public"."patients" WHERE age IS NULL) AS found
