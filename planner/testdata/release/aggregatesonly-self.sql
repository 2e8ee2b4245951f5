SELECT a.unit, sum(b.pay) FROM staff a JOIN staff b USING (age) GROUP BY 1;
