SELECT avg(pay), (SELECT count(*) FROM (VALUES (1)) v WHERE unit = 'icu') FROM staff GROUP BY unit;
