SELECT count(*) FROM patients WHERE cost OPERATOR(public.>) ALL (SELECT n FROM names)
