SELECT z.y FROM (SELECT x.y FROM (SELECT ssn AS y FROM patients) x) z
