SELECT z.city, c.* FROM zip_city z, tailor.case_count('"public" . CONDITIONS'::regclass, ARRAY[z.zip]) c
