WITH i AS (SELECT age, zip FROM patients INTERSECT SELECT age, zip FROM patients WHERE sex = 'male') SELECT zip, i.age FROM i ORDER BY age, zip
