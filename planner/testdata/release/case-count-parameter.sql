SELECT expected FROM tailor.case_count('conditions', $1::text[]) c WHERE c.lower > 0
