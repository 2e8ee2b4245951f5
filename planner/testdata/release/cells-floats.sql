SELECT unit, sum(bonus), avg(staff.bonus) FILTER (WHERE public.staff.bonus BETWEEN 1 AND 2), sum(hours), avg(hours), -stddev(bonus), var_pop(debt) FROM staff GROUP BY unit
