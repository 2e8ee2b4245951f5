SELECT COUNT(*) AS rowcount FROM (SELECT sex AS sex, "Odd Name" AS "Odd Name", COUNT(*) AS count FROM public.patients GROUP BY sex, "Odd Name" LIMIT 50000) AS rowcount_qry
