SELECT count(*) FROM patients WHERE zip IN ('10000', '17000', '24000')
