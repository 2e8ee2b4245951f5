SELECT count(*) FROM patients WHERE zip ~ '^1[0-9]{4}$'
