SELECT age FROM patients WHERE EXISTS (SELECT FROM zip_city c WHERE c.zip OPERATOR(public.=) '35201')
