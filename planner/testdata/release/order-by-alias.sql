SELECT zip AS area, count(*) AS n FROM patients GROUP BY zip ORDER BY n DESC, area
