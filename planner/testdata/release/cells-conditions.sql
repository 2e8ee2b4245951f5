SELECT avg(pay) FROM staff WHERE (unit LIKE 'i%' OR unit IN ('a', 'b')) AND NOT age BETWEEN 20 AND $1 AND pay IS NOT NULL AND sex = ANY (ARRAY['F', 'M']) AND unit = ANY ($2) AND hired <= CURRENT_DATE
