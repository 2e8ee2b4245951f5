SELECT count(*) FROM staff WHERE debt > $1 OR debt IN ($2, 3) OR debt = ANY ($3) OR debt = ANY (ARRAY[$4]) OR pay = $5
