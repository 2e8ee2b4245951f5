SELECT SUM(CAST(1 AS BIGINT)) AS "x" , "Custom SQL Query"."sex" AS "sex" FROM (
  select * from patients where age between 20 and 70
) "Custom SQL Query" GROUP BY 2
