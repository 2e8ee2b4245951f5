SELECT count(*) FROM patients WHERE age OPERATOR(mine.=) ANY ('{40,41}'::int[])
