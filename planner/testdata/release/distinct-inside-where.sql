SELECT d.age FROM (SELECT DISTINCT p.age FROM patients AS p WHERE p.age IS NOT DISTINCT FROM 30 AND (p.sex = 'male')) d
