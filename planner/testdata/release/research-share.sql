SELECT "Odd Name", count(*) * 100.0 / sum(count(*)) OVER () AS pct FROM patients GROUP BY "Odd Name" ORDER BY pct DESC
