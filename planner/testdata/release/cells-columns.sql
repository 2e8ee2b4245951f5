SELECT who.u, count(*) FROM staff AS who (a, s, u) WHERE who.a > 30 GROUP BY u;
