SELECT count(*) FROM staff, (VALUES (1)) v (x)
