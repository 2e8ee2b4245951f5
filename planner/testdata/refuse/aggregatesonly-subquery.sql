SELECT max(p) FROM (SELECT pay AS p FROM staff) s;
