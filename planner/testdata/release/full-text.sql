SELECT count(*) FROM patients WHERE to_tsvector('english', diagnosis) @@ to_tsquery('flu')
