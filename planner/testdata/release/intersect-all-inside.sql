SELECT z FROM (SELECT zip AS z, 1 AS one FROM patients INTERSECT ALL SELECT zip, 1 FROM patients WHERE diagnosis = 'flu') i
