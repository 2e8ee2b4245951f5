SELECT count(*) FROM patients WHERE zip LIKE '10%' AND diagnosis ILIKE '%flu%' AND sex SIMILAR TO '(fe)?male'
