SELECT * FROM tailor.case_count($1, $2)
