SELECT zip AS sex, count(*) FROM patients GROUP BY sex, zip
