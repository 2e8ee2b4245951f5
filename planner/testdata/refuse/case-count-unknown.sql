SELECT * FROM tailor.case_count('no.such.table', ARRAY['1'])
