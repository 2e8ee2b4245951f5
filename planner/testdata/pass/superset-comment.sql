SELECT pgd.description AS table_comment FROM pg_catalog.pg_description pgd WHERE pgd.objsubid = 0 AND pgd.objoid = to_regclass('public.patients')
