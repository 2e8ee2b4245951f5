SELECT count(*) FROM patients WHERE zip OPERATOR(public.=) ANY (SELECT zip FROM zip_city)
