SELECT sex, count(*), count(pay), sum(pay), avg(bonus) FILTER (WHERE age > 30) FROM staff WHERE age >= 40 GROUP BY sex HAVING sum(pay) > 100 ORDER BY avg(pay);
