PREPARE q (int[], varchar(2)) AS WITH old AS (SELECT age, zip FROM patients WHERE age = ANY ($1)) SELECT age, zip FROM old UNION SELECT age, zip FROM patients WHERE diagnosis = $2 -- both
