SELECT b.label, count(*) FROM patients p JOIN (VALUES ('child', 0, 17), ('adult', 18, 64), ('old', 65, 200)) AS b(label, lo, hi) ON p.age BETWEEN b.lo AND b.hi GROUP BY b.label
