SELECT u.zip FROM (SELECT zip FROM patients UNION (SELECT zip FROM patients UNION ALL SELECT DISTINCT zip FROM patients)) u
