SELECT sex, count(*), sum(count(*)) OVER () FROM patients GROUP BY sex
